"""Interval synopsis (B-INT; 002 sections 3.1.1 and 5, thesis 2.3.4): base intervals over panes, for any component.

Besides every pane it keeps every dyadic interval, that is 2^l panes from a multiple of 2^l on. A window of W panes is
the union of at most 2·log2 W of them. Update O(groups) amortised: one combine per pane. Lookup O(log W) combines.
Space O(panes · groups), twice that of the basic interval synopsis. The intervals are kept in order, each in the spare
row of the last pane of its left half (`kernels.dyadic`), so that they come and go with the panes in one flat queue.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.dyadic import answer_single, cover_dyadic, plan_nodes
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.combining import Combining


class Interval(Combining):
    """The row of pane k is followed by that of the interval whose middle is after k."""

    name = "interval"

    @property
    def rows_per_pane(self) -> int:
        """The pane, and one interval."""
        return 2

    def _plan(self, begin: int, end: int) -> tuple[Ints, Ints, Ints]:
        targets, lefts, rights = np.empty((3, end - begin + 64), np.int64)
        count = plan_nodes(self.first, begin, end, self._base, targets, lefts, rights)
        return targets[:count], lefts[:count], rights[:count]

    def _cover_cost(self, panes: int, dyadic: int, marked: int) -> int:
        return dyadic

    def _cover(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        if groups == 1 and self._plain:
            where = (first, last, self.first, self._base)
            answer_single(self.component.op, self._store, *where, self.component.identity, offsets, out)
        else:
            super()._cover(first, last, groups, offsets, present, out)

    def _room(self, first: Ints, last: Ints) -> int:
        return len(first) * 2 * (len(self).bit_length() + 1)

    def _covers(self, first: Ints, last: Ints, bounds: Ints, cover: Ints) -> int:
        cover_dyadic(first, last, self.first, self._base, bounds, cover)
        return len(first)
