"""A queue of rows [words, groups], to which groups are added on the right."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.queue import FEWEST, Queue


def spare(groups: int) -> int:
    """The capacity for so many groups: half as much again, and no power of two, so that rows spread over cache sets."""
    return groups if groups <= 1 else (groups + (groups >> 1) | 7) + 9


class Matrix(Queue):
    """Rows [words, stride]; columns without a group hold the identity."""

    def __init__(self, identity: Ints, stride: int) -> None:
        super().__init__(np.int64, len(identity), 0)
        self.identity = identity
        self.data = self._blank(FEWEST, stride)

    @property
    def stride(self) -> int:
        """Columns per row."""
        return int(self.data.shape[2])

    def widen(self, stride: int) -> None:
        """More columns, filled with the identity."""
        data = self._blank(len(self.data), stride)
        data[self.start : self.stop, :, : self.stride] = self.rows
        self.data = data

    def select(self, groups: Any, stride: int) -> None:
        """Keep these columns only, in this order."""
        live = len(self)
        data = self._blank(max(live + live // 2, FEWEST), stride)
        data[:live, :, : len(groups)] = self.rows[:, :, groups]
        self.data, self.start, self.stop = data, 0, live

    def twin(self) -> Matrix:
        """An independent copy."""
        twin = Matrix(self.identity, 0)
        twin.data, twin.start, twin.stop = self.data.copy(), self.start, self.stop
        return twin

    def load_groups(self, flat: Any, rows: int, groups: int) -> None:
        """Have these rows only, of the first groups, given flat."""
        self.data = self._blank(max(rows + rows // 2, FEWEST), self.stride)
        self.data[:rows, :, :groups] = np.asarray(flat).reshape(rows, len(self.identity), groups)
        self.start, self.stop = 0, rows

    def _blank(self, rows: int, stride: int) -> Ints:
        data = np.empty((rows, len(self.identity), stride), np.int64)
        data[:] = self.identity[None, :, None]
        return data
