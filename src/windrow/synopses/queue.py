"""A queue of columns of integers: appended at the back, dropped at the front.

Appending is O(1) amortised per number (capacity doubles), dropping is O(1) amortised (an offset moves; memory is given
back when little is left). Space is at most a small multiple of what is in the queue.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints

FEWEST = 16


class Queue:
    """Columns of the same length; `queue[k]` is column k, valid until the next `append` or `drop`."""

    def __init__(self, columns: int) -> None:
        self._data = np.empty((columns, FEWEST), np.int64)
        self._start = 0
        self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, column: int) -> Ints:
        return np.asarray(self._data[column, self._start : self._stop])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._data.nbytes)

    def append(self, *columns: Ints) -> None:
        """The same number of values for each column."""
        more = len(columns[0])
        if self._stop + more > self._data.shape[1]:
            self._move(max(2 * (len(self) + more), FEWEST))
        for column, values in zip(self._data, columns, strict=True):
            column[self._stop : self._stop + more] = values
        self._stop += more

    def drop(self, count: int) -> None:
        """Forget the first so many values of each column."""
        self._start += count
        if 8 * len(self) < self._data.shape[1] > FEWEST:
            self._move(max(2 * len(self), FEWEST))

    def _move(self, capacity: int) -> None:
        live = len(self)
        if capacity <= self._data.shape[1] < 2 * capacity:
            # Enough of the front is free: the target does not overlap what is not yet copied, row by row.
            self._data[:, :live] = self._data[:, self._start : self._stop].copy()
        else:
            data = np.empty((len(self._data), capacity), np.int64)
            data[:, :live] = self._data[:, self._start : self._stop]
            self._data = data
        self._start, self._stop = 0, live
