"""A queue of rows in one array: appended at the back, dropped at the front.

Appending is O(row) amortised (capacity doubles), dropping is O(1) amortised (an offset moves; rows are shifted when
half of the array is free, and memory is given back when little is left). Space is at most a small multiple of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST = 16


class Queue:
    """Rows of any shape and type, between `start` and `stop` of `data`."""

    def __init__(self, dtype: Any, *shape: int) -> None:
        self.data: NDArray[Any] = np.empty((FEWEST, *shape), dtype)
        self.start = 0
        self.stop = 0

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.data.nbytes)

    @property
    def rows(self) -> NDArray[Any]:
        """All rows without a copy, to be read or changed in place; valid until the next `reserve` or `drop`."""
        return self.data[self.start : self.stop]

    def reserve(self, rows: int) -> None:
        """Make room for this many rows after `stop`."""
        if self.stop + rows <= len(self.data):
            return
        live = len(self)
        if 2 * (live + rows) <= len(self.data):
            self.data[:live] = self.rows
            self.start, self.stop = 0, live
        else:
            self._move(2 * (live + rows))

    def push(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        self.reserve(len(rows))
        self.data[self.stop : self.stop + len(rows)] = rows
        self.stop += len(rows)

    def drop(self, rows: int) -> None:
        """Forget the first rows; gives memory back when little is left."""
        self.start += rows
        if len(self.data) > FEWEST and 8 * len(self) < len(self.data):
            self._move(max(2 * len(self), FEWEST))

    def load(self, rows: Any) -> None:
        """Have these rows only, given flat or not."""
        shape = self.data.shape[1:]
        self.start = self.stop = 0
        self.push(np.asarray(rows, self.data.dtype).reshape(-1, *shape))

    def copied(self) -> Queue:
        """An independent copy."""
        twin = Queue(self.data.dtype, *self.data.shape[1:])
        twin.push(self.rows)
        return twin

    def _move(self, capacity: int) -> None:
        live = len(self)
        data = np.empty((capacity, *self.data.shape[1:]), self.data.dtype)
        data[:live] = self.rows
        self.data, self.start, self.stop = data, 0, live
