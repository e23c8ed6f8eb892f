"""A queue of rows [words, groups]: appended at the back, expired at the front, groups added on the right.

Appending is O(row) amortised (capacity doubles), expiring is O(1) amortised (an offset moves; rows are shifted when
half of the matrix is free). Space is at most twice the live rows, plus the spare columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Ints

FEWEST_ROWS = 16


def spare(groups: int) -> int:
    """The capacity for so many groups: half as much again, and no power of two, so that rows spread over cache sets."""
    return groups if groups <= 1 else (groups + (groups >> 1) | 7) + 9


class Matrix:
    """Rows [words, stride] between `start` and `stop` of `data`; columns without a group hold the identity."""

    def __init__(self, identity: Ints, stride: int) -> None:
        self.identity = identity
        self.start = 0
        self.stop = 0
        self.data = self._blank(FEWEST_ROWS, stride)

    @property
    def stride(self) -> int:
        """Columns per row."""
        return int(self.data.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.data.nbytes)

    def __len__(self) -> int:
        return self.stop - self.start

    def reserve(self, rows: int) -> None:
        """Make room for this many rows after `stop`."""
        if self.stop + rows <= len(self.data):
            return
        live = len(self)
        if 2 * (live + rows) <= len(self.data):
            self.data[:live] = self.data[self.start : self.stop]
        else:
            data = np.empty((2 * (live + rows), *self.data.shape[1:]), np.int64)
            data[:live] = self.data[self.start : self.stop]
            self.data = data
        self.start, self.stop = 0, live

    def drop(self, rows: int) -> None:
        """Forget the first rows; gives memory back when little is left."""
        self.start += rows
        live = len(self)
        if len(self.data) > FEWEST_ROWS and 8 * live < len(self.data):
            data = np.empty((max(2 * live, FEWEST_ROWS), *self.data.shape[1:]), np.int64)
            data[:live] = self.data[self.start : self.stop]
            self.data, self.start, self.stop = data, 0, live

    def widen(self, stride: int) -> None:
        """More columns, filled with the identity."""
        data = self._blank(len(self.data), stride)
        data[self.start : self.stop, :, : self.stride] = self.data[self.start : self.stop]
        self.data = data

    def select(self, groups: Any, stride: int) -> None:
        """Keep these columns only, in this order."""
        live = len(self)
        data = self._blank(max(live + live // 2, FEWEST_ROWS), stride)
        data[:live, :, : len(groups)] = self.data[self.start : self.stop][:, :, groups]
        self.data, self.start, self.stop = data, 0, live

    def copy(self) -> Matrix:
        """An independent copy."""
        twin = Matrix(self.identity, 0)
        twin.data, twin.start, twin.stop = self.data.copy(), self.start, self.stop
        return twin

    def rows(self, groups: int) -> Ints:
        """The live rows of the first groups, for a snapshot."""
        return self.data[self.start : self.stop, :, :groups]

    def load(self, flat: Any, rows: int, groups: int) -> None:
        """The inverse of `rows`, given flat."""
        self.data = self._blank(max(rows + rows // 2, FEWEST_ROWS), self.stride)
        self.data[:rows, :, :groups] = np.asarray(flat).reshape(rows, len(self.identity), groups)
        self.start, self.stop = 0, rows

    def _blank(self, rows: int, stride: int) -> Ints:
        data = np.empty((rows, len(self.identity), stride), np.int64)
        data[:] = self.identity[None, :, None]
        return data
