"""A schedule: what is to happen at which time, taken out when that time has come.

Adding and taking out are amortised O(1) for each entry, in batches or one by one, for any distribution of times: a
timing wheel (`kernels.schedule`), which is a calendar queue (thesis 3.5.2) that needs no guess at its bucket width.
Space: 21 bytes for each entry, at most eight times as many places as entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels import schedule as kernels
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.kernels.schedule import Weights
from windrow.state.rows import NEVER

FEWEST = 64
BEGINNING = -(1 << 63)


class Schedule:
    """Entries (time, payload, weight) with `now` < time < NEVER."""

    now: int

    def __init__(self) -> None:
        self.load(BEGINNING, *_nothing())

    def __len__(self) -> int:
        return int(self._fields[kernels.COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self._heads, self._following, self._times, self._payloads, self._weights, self._fields)
        return sum(int(array.nbytes) for array in arrays)

    def add(self, times: Ints, payloads: Ints, weights: Any = 0) -> None:
        """Keep entries; one weight may be that of all. Those with a time that is past, or NEVER, are left out."""
        times, payloads = frozen(times), frozen(payloads)
        weights = frozen(np.array(weights, np.int8, ndmin=1))
        done = 0
        while True:
            done = kernels.add_entries(
                times,
                payloads,
                weights,
                done,
                self.now,
                NEVER,
                self._heads,
                self._following,
                self._times,
                self._payloads,
                self._weights,
                self._fields,
            )
            if done == len(times):
                return
            self._enlarge(len(times) - done)

    def due(self, upto: int) -> tuple[Ints, Ints, Weights]:
        """Times, payloads and weights of the entries with now < time <= upto, in any order; they are gone then."""
        if upto <= self.now:
            return _nothing()
        found = kernels.take_due(
            self.now,
            upto,
            self._heads,
            self._following,
            self._times,
            self._payloads,
            self._weights,
            self._fields,
        )
        self.now = upto
        if len(self._times) > FEWEST and 8 * len(self) < len(self._times):
            self.load(self.now, *self.entries())
        return found

    def entries(self) -> tuple[Ints, Ints, Weights]:
        """Copies of the times, payloads and weights of all entries, in any order."""
        return kernels.all_entries(self._heads, self._following, self._times, self._payloads, self._weights, len(self))

    def rename(self, names: Ints) -> None:
        """Payload p becomes names[p]; entries for which that is negative are dropped. O(entries)."""
        times, payloads, weights = self.entries()
        renamed = names[payloads]
        kept = renamed >= 0
        self.load(self.now, times[kept], renamed[kept], weights[kept])

    def load(self, now: int, times: Ints, payloads: Ints, weights: Any) -> None:
        """Have these entries only; `now` and `entries()` are a whole snapshot."""
        room = max(FEWEST, 2 * len(times))
        self.now = now
        self._heads: Codes = np.full(kernels.LEVELS * kernels.SLOTS, -1, np.int32)
        self._following: Codes = np.empty(room, np.int32)
        self._times: Ints = np.empty(room, np.int64)
        self._payloads: Ints = np.empty(room, np.int64)
        self._weights: Weights = np.empty(room, np.int8)
        self._fields: Ints = np.zeros(kernels.FIELDS, np.int64)
        self._fields[kernels.FREE] = -1
        if len(times):
            self.add(times, payloads, weights)

    def _enlarge(self, missing: int) -> None:
        more = max(missing, len(self._times))
        self._following = np.concatenate([self._following, np.empty(more, np.int32)])
        self._times = np.concatenate([self._times, np.empty(more, np.int64)])
        self._payloads = np.concatenate([self._payloads, np.empty(more, np.int64)])
        self._weights = np.concatenate([self._weights, np.empty(more, np.int8)])


def _nothing() -> tuple[Ints, Ints, Weights]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8)
