"""A queue of rows in one array: appended at the back, dropped at the front, both amortised O(row)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST = 64


class RowQueue:
    """Rows of any shape and type; `rows` are those that are there, in order, without a copy."""

    def __init__(self, dtype: Any, *shape: int) -> None:
        self._data: NDArray[Any] = np.empty((FEWEST if not shape else 4, *shape), dtype)
        self._start = self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._data.nbytes)

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, to be read or changed in place."""
        return self._data[self._start : self._stop]

    def push(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        if self._stop + len(rows) > len(self._data):
            live = self.rows
            if 2 * (len(live) + len(rows)) > len(self._data):
                self._data = np.empty((2 * (len(live) + len(rows)), *self._data.shape[1:]), self._data.dtype)
            self._data[: len(live)] = live
            self._start, self._stop = 0, len(live)
        self._data[self._stop : self._stop + len(rows)] = rows
        self._stop += len(rows)

    def drop(self, rows: int) -> None:
        """Forget the first rows; memory is given back when little is left."""
        self._start += rows
        if 8 * len(self) < len(self._data) and len(self._data) > FEWEST:
            live = self.rows.copy()
            self._data = np.empty((max(2 * len(live), 4), *self._data.shape[1:]), self._data.dtype)
            self._data[: len(live)] = live
            self._start, self._stop = 0, len(live)

    def load(self, rows: Any) -> None:
        """Have these rows only, given flat or not."""
        shape = self._data.shape[1:]
        self._start = self._stop = 0
        self.push(np.asarray(rows, self._data.dtype).reshape(-1, *shape))
