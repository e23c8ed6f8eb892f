"""CI-COUNT and CI-SUM (002 section 4): which keys have more, or fewer, than v elements in the last T time units?

A key has more than v elements in a window exactly if its (v+1)-th element from the end is in it. Timestamps of p
distances of each size 1, 2, 4, … from the end are kept per key, each with a search tree over all keys, so that a
lookup touches the keys that it gives back and no others. It gives a superset of the answer, and says which of the
candidates are sure; the others are to be checked with the running synopsis.

Update: amortised O(p) timestamps, O(p log a) for a value a (a copies of one element, CI-SUM). A timestamp costs one
comparison, rarely O(log keys). Lookup: O(candidates · log₈ keys). Space: O(keys · p log(most / p)).

Errors, proved as in Lemma 4.1 from the distances of neighbouring levels. Level (e, r) holds one element at a distance
(counted from 1) of p(2ᵉ - 1) + r2ᵉ + 1 … p(2ᵉ - 1) + (r + 1)2ᵉ. `above` takes the last level that lies within v + 1:
a candidate has more than v(1 - ε) elements, ε = 3/4 for p = 1 and 2/(p + 2) for p ≥ 2. `below` takes the first level
that lies at or beyond v: a candidate has fewer than v(1 + ε), ε = 3 for p = 1 and 2/p for p ≥ 2. Sizes up to p are
exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels import substream
from windrow.kernels.jit import Ints, frozen
from windrow.synopses.substream_index import Candidates, SubstreamIndex


class SubstreamFilter(SubstreamIndex):
    """Answers thresholds up to `most`; keys are small integers, elements of one key come in the order of time.

    >>> trades = SubstreamFilter(p=4, most=100)
    >>> trades.update([0, 1, 0, 0], [10, 11, 12, 19])
    >>> trades.above([10], [1]).keys  # more than one trade after 10
    array([0], dtype=int32)
    """

    def __init__(self, p: int = 4, most: int = 1 << 20, keys: int = 0) -> None:
        if p < 1:
            raise ValueError(f"a substream filter has at least one level of each size, found p = {p}")
        if not 1 <= most < 1 << 48:
            raise ValueError(f"a substream filter serves thresholds of 1 … 2**48, found {most}")
        self.p = p
        self.most = most
        classes = 1
        while p * ((1 << classes) - 1) <= most:
            classes += 1
        # One class more, so that some level lies wholly beyond the greatest threshold.
        sizes = 1 << np.repeat(np.arange(classes + 1, dtype=np.int64), p)
        self.farthest_of: Ints = np.cumsum(sizes)
        """The greatest distance of each level, counted from 1."""
        self.nearest_of: Ints = self.farthest_of - sizes + 1
        self.lengths: Ints = np.zeros(0, np.int64)
        """How many elements each key has had; only its last digits matter once the levels are full."""
        super().__init__(len(sizes), keys)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + int(self.lengths.nbytes)

    def update(self, keys: Any, timestamps: Any, values: Any = None) -> None:
        """Elements in order; a value counts as so many elements, one of 0 or less as none. Without values: one each."""
        keys = np.asarray(keys, np.int32)
        copies = np.ones(len(keys), np.int64) if values is None else np.asarray(values, np.int64)
        ticks = np.asarray(timestamps, np.int64)
        self._grow_for(keys)
        bad = substream.push_all(
            self.newest, self.oldest, self.starts, self.lengths, self.p, int(self.farthest_of[-1]),
            frozen(keys), frozen(ticks), frozen(copies),
        )  # fmt: skip
        if bad >= 0:
            raise ValueError(
                f"elements of a key come in the order of time: key {keys[bad]} at {ticks[bad]} came after "
                f"{self.newest[0, keys[bad]]}; the elements before it were taken in"
            )

    def above(self, starts: Any, thresholds: Any) -> Candidates:
        """Per window (start, now]: the keys that may have more than the threshold in it."""
        needed = self._checked(thresholds) + 1
        likely = np.searchsorted(self.farthest_of, needed, side="right") - 1
        certain = np.searchsorted(self.nearest_of, needed)
        return self.find(np.asarray(starts, np.int64), likely, certain, False)

    def below(self, starts: Any, thresholds: Any) -> Candidates:
        """Per window (start, now]: the keys that may have fewer than the threshold in it, but at least one."""
        limits = np.maximum(self._checked(thresholds), 1)
        likely = np.searchsorted(self.nearest_of, limits)
        certain = np.searchsorted(self.farthest_of, limits, side="right") - 1
        return self.find(np.asarray(starts, np.int64), likely, certain, True)

    def lookup(self, now: int, length: int, threshold: int, below: bool = False) -> Candidates:
        """LOOKUP(τ, T, (v, ∞)) or LOOKUP(τ, T, (0, v)): all elements so far are at or before τ."""
        find = self.below if below else self.above
        return find([now - length], [threshold])

    def error(self, below: bool = False) -> float:
        """The bound ε on how far a candidate is from the threshold, relative to it."""
        if self.p == 1:
            return 3.0 if below else 0.75
        return 2 / self.p if below else 2 / (self.p + 2)

    def _checked(self, thresholds: Any) -> NDArray[np.int64]:
        given = np.asarray(thresholds, np.int64)
        if len(given) and not 0 <= int(np.min(given)) <= int(np.max(given)) <= self.most:
            raise ValueError(f"thresholds of this filter are 0 … {self.most}, found {given}")
        return given

    def select(self, keys: Any) -> None:
        """Keep these keys only, renumbered in this order."""
        lengths = self.lengths[keys]
        super().select(keys)
        self.lengths[:] = 0
        self.lengths[: len(lengths)] = lengths

    def _allocate(self, levels: int, room: int) -> None:
        super()._allocate(levels, room)
        kept = self.lengths[: int(self.starts[1])]
        self.lengths = np.zeros(int(self.starts[1]), np.int64)
        self.lengths[: len(kept)] = kept
