"""When a substream filter finds the groups of a HAVING, and when scanning all groups is cheaper.

A scan reads two prefix sums of every group for every window: SCAN per group and window. A filter (CI-COUNT or CI-SUM
over pane partials; an element is a group's partial of a closed pane, its timestamp the pane's edge) costs PUSH per
partial that enters and FIND per candidate. So it is for many windows over groups that change slowly, with few groups
in each answer: at 100,000 groups a window costs a tenth, but a group that changes costs as much as scanning a hundred.
Like one who rents skis before buying them, the search scans until what a filter would have saved has paid for building
one from the panes, and gives it up when it has cost more than it saved: never more than about twice the better choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from windrow.kernels.jit import Codes, Ints
from windrow.synopses.substream_filter import SubstreamFilter

FEWEST_GROUPS = 4096
"""Below it a scan takes some microseconds."""
SCAN, PUSH, FIND = 2.4, 220.0, 60.0
"""Nanoseconds, measured: per group and window of a scan, per partial that goes into the filter, per candidate."""
LEVELS_PER_SIZE = 2
MOST = 1 << 40
NOT_YET = -(1 << 63)
GREATEST = (1 << 63) - 1

Cells: TypeAlias = Callable[[int], tuple[Codes, Ints]]
"""The groups that have a partial in a closed pane, given by position, and the partials: negative when of no use."""


@dataclass(frozen=True)
class Limits:
    """For window i of a lookup: only groups whose component at `place` is in low[i] … high[i]."""

    place: int
    low: Ints
    high: Ints


@dataclass(eq=False)
class CandidateSearch:
    """The filter of one component, if it pays; `rows` says that the component counts rows."""

    rows: bool
    filter: SubstreamFilter | None = None
    served: int = 0
    """Windows that were answered by the filter."""
    _fed: int = NOT_YET
    """The edge of the newest pane in the filter."""
    _seen: int = NOT_YET
    """The edge of the newest pane at the last call."""
    _balance: float = 0.0
    """What the filter has saved, or would have saved, less what it has cost."""
    _found: float = 0.0
    """Candidates per window, as of the last time; before that the best is hoped for."""
    _unfit: bool = False

    def find(
        self, edges: Ints, cells: Cells, groups: int, starts: Ints, ends: Ints, limits: Limits
    ) -> tuple[Ints, Codes] | None:
        """Offsets and candidate groups of the windows (start, end]; None when they are to be scanned."""
        asked = self._thresholds(limits)
        if asked is None or groups < FEWEST_GROUPS or self._unfit or not len(edges) or not len(ends):
            return None
        thresholds, below = asked
        greatest = int(np.max(thresholds))
        if greatest > MOST or not self._pays(edges, cells, groups, ends, greatest):
            return None
        if self.filter is None or self.filter.most < greatest:
            self.filter = SubstreamFilter(LEVELS_PER_SIZE, min(4 * max(greatest, 1), MOST), groups)
            self._fed = NOT_YET
        return self._serve(self.filter, edges, cells, starts, ends, thresholds, below)

    def select(self, live: Ints, groups: int) -> None:
        """The share group has renumbered its groups, of which there were so many."""
        if self.filter is not None:
            self.filter.reserve(groups)
            self.filter.select(live)

    def _thresholds(self, limits: Limits) -> tuple[Ints, bool] | None:
        """COUNT or SUM > v for v ≥ 0, or COUNT(*) < v: what a filter can decide. The v, and whether it is <."""
        if (limits.high == GREATEST).all() and (limits.low >= 1).all():
            return limits.low - 1, False
        if self.rows and (limits.low <= 1).all() and (limits.high >= 0).all() and (limits.high < GREATEST).all():
            return limits.high + 1, True
        return None

    def _pays(self, edges: Ints, cells: Cells, groups: int, ends: Ints, greatest: int) -> bool:
        if int(np.min(ends)) < self._fed and self.filter is not None:
            return False  # elements that are newer than these windows are in the filter already
        built = self.filter is not None and self.filter.most >= greatest
        newest = int(np.searchsorted(edges, np.max(ends), side="right"))
        price = PUSH * len(cells(newest - 1)[0]) if newest else 0.0
        fresh = newest - int(np.searchsorted(edges, self._seen, side="right"))
        self._seen = max(self._seen, int(edges[newest - 1])) if newest else self._seen
        self._balance += (SCAN * groups - FIND * self._found) * len(ends) - max(fresh, 0) * price
        if built:
            if self._balance < 0.0:
                self.filter, self._balance = None, 0.0
            return self.filter is not None
        self._balance = max(self._balance, 0.0)
        if self._balance <= newest * price:
            return False
        self._balance = newest * price  # so much it may cost again before it is given up
        return True

    def _serve(
        self,
        filtered: SubstreamFilter,
        edges: Ints,
        cells: Cells,
        starts: Ints,
        ends: Ints,
        thresholds: Ints,
        below: bool,
    ) -> tuple[Ints, Codes] | None:
        """Let time pass pane by pane, and look up the windows of each end when it has come."""
        search = filtered.below if below else filtered.above
        sizes = np.zeros(len(ends), np.int64)
        pieces: list[Codes] = []
        order: list[Ints] = []
        for end in np.unique(ends):
            first = int(np.searchsorted(edges, self._fed, side="right"))
            for pane in range(first, int(np.searchsorted(edges, end, side="right"))):
                gids, partials = cells(pane)
                if len(partials) and int(np.min(partials)) < 0:
                    self._unfit, self.filter = True, None
                    return None
                filtered.update(gids, np.full(len(gids), edges[pane]), partials)
                self._fed = int(edges[pane])
            own = np.flatnonzero(ends == end)
            found = search(starts[own], thresholds[own])
            sizes[own] = np.diff(found.offsets)
            pieces.append(found.keys)
            order.append(own)
        self.served += len(ends)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._found = float(offsets[-1]) / len(ends)
        if len(pieces) == 1:
            return offsets, pieces[0]
        turn = np.concatenate(order)
        lengths = sizes[turn]
        # Row n of the pieces, which are in the order of time, goes to where its window stands in the call.
        place = np.arange(int(offsets[-1])) + np.repeat(offsets[turn] - (np.cumsum(lengths) - lengths), lengths)
        present = np.empty(int(offsets[-1]), np.int32)
        present[place] = np.concatenate(pieces)
        return offsets, present

    def describe(self, groups: int) -> str:
        """For EXPLAIN: how the groups are found now, and why."""
        if self.filter is not None:
            kind = "CI-COUNT" if self.rows else "CI-SUM"
            return (
                f"by a substream filter ({kind}, p = {self.filter.p}): a lookup costs the groups that it finds, not "
                f"all {groups:,}"
            )
        if self._unfit:
            return "by scanning all groups: a substream filter needs sums that are not negative"
        if groups < FEWEST_GROUPS:
            return f"by scanning all groups: there are fewer than {FEWEST_GROUPS:,}"
        return "by scanning all groups: too few windows per change of a group for a substream filter to pay"
