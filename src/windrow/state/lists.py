"""Lists of slots by code: the rows of each group, or the rows that are equal. O(1) per slot that comes or goes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints
from windrow.kernels.lists import NONE, append_slots, remove_slots, take_first


class Lists:
    """For each code its slots, oldest first; a slot is in one list at most."""

    def __init__(self) -> None:
        self.first: Ints = np.full(0, NONE, np.int64)
        """By code; NONE when there is no slot."""
        self.after: Ints = np.full(0, NONE, np.int64)
        """By slot."""
        self._last: Ints = np.full(0, NONE, np.int64)
        self._before: Ints = np.full(0, NONE, np.int64)
        self._code: Codes = np.full(0, NONE, np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self.first, self.after, self._last, self._before, self._code)
        return sum(array.nbytes for array in arrays)

    def grow(self, slots: int, codes: int) -> None:
        """Make room."""
        if slots > len(self.after):
            self.after = resized(self.after, slots, NONE)
            self._before = resized(self._before, slots, NONE)
            self._code = resized(self._code, slots, NONE)
        if codes > len(self.first):
            codes = max(codes, 2 * len(self.first))
            self.first = resized(self.first, codes, NONE)
            self._last = resized(self._last, codes, NONE)

    def append(self, slots: Ints, codes: Codes) -> None:
        """Each slot goes to the end of the list of its code."""
        self._code[slots] = codes
        append_slots(slots, codes, self.first, self._last, self.after, self._before)

    def remove(self, slots: Ints) -> None:
        """These slots leave their lists."""
        codes = self._code[slots]
        remove_slots(slots, codes, self.first, self._last, self.after, self._before)

    def take(self, codes: Codes) -> Ints:
        """One slot of each code, which leaves its list; NONE where there is none."""
        return take_first(codes, self.first, self._last, self.after, self._before)

    def renumber(self, live: Ints) -> None:
        """Code live[k] becomes k; the others have no slots."""
        numbers = np.full(len(self.first), NONE, np.int32)
        numbers[live] = np.arange(len(live))
        # Slots that are in no list may have any code.
        self._code = np.where(self._code >= 0, numbers[self._code], NONE).astype(np.int32)
        self.first, self._last = self.first[live], self._last[live]


def resized(array: NDArray[Any], size: int, fill: int) -> NDArray[Any]:
    """A longer copy, with `fill` behind."""
    longer = np.full(size, fill, array.dtype)
    longer[: len(array)] = array
    return longer
