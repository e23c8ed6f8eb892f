"""Landmark synopsis (L-INT; 002 section 3.1.2, thesis 2.3.4): O(1) lookups for any component, made for given windows.

The lengths of the registered windows are cut into γ partitions with W_max / W_min <= 2, here at the powers of two, and
each partition has a landmark at every multiple of its power. A pane keeps, per partition, the interval from the
landmark before it and the one up to the landmark after it. A window with a length of the partition has a landmark in
it: it is the suffix of its first pane, at most one block between two landmarks, and the prefix of its last pane. So an
update costs 1 + 2γ rows per pane amortised, a lookup at most three, space is O(γ · panes · groups).

A window of another length (because panes are missing where nothing came, or nobody told its length) takes the longest
landmarks that it meets and as many blocks as it needs; if it meets none, it combines its panes, of which there are
fewer than between two landmarks of the first partition. `prepare` tells the lengths; it rebuilds the intervals when
the partitions change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.kernels.landmarks import cover_landmarks, plan_landmarks
from windrow.synopses.combining import Combining


class Landmark(Combining):
    """The row of pane k is followed by a prefix and a suffix for each partition."""

    name = "landmark"

    @property
    def rows_per_pane(self) -> int:
        """The pane, and two intervals per partition."""
        return 1 + 2 * len(self.steps)

    def prepare(self, lengths: Any) -> None:
        """Rebuild the intervals if these windows need other landmarks."""
        before = self.steps
        own = self._own
        super().prepare(lengths)
        if not np.array_equal(self.steps, before):
            self._refill(own)

    def _plan(self, begin: int, end: int) -> tuple[Ints, Ints, Ints]:
        # A block that ends here may have begun long before.
        room = len(self.steps) * 2 * (end - begin) + int(self.steps.sum())
        targets, lefts, rights = np.empty((3, room), np.int64)
        count = plan_landmarks(self.first, begin, end, self._base, self.steps, targets, lefts, rights)
        return targets[:count], lefts[:count], rights[:count]

    def _cover_cost(self, panes: int, dyadic: int, marked: int) -> int:
        return marked

    def _room(self, first: Ints, last: Ints) -> int:
        return 4 * len(first) + int((last - first).max(initial=0)) + 2

    def _covers(self, first: Ints, last: Ints, bounds: Ints, cover: Ints) -> int:
        return cover_landmarks(first, last, self.first, self._base, self.steps, bounds, cover)
