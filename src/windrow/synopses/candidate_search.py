"""When a substream filter finds the groups of a HAVING, and when scanning all groups is cheaper.

A scan reads every group for every window: SCAN per group and window. A filter over pane partials (an element is a
group's partial of a closed pane, its timestamp the pane's edge) costs PUSH per partial that enters and FIND per
candidate. So it is for many windows over groups that change slowly, with few groups in each answer: at 100,000 groups a
window costs a tenth, but a group that changes costs as much as scanning a hundred. Like one who rents skis before
buying them, the search scans until what a filter would have saved has paid for building one from the panes, and gives
it up when it has cost more than it saved: never more than about twice the better choice.

Which filter it is depends on the component: `sum_search` and `extreme_search`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from windrow.kernels.jit import Codes, Ints
from windrow.synopses.substream_index import Candidates, SubstreamIndex

FEWEST_GROUPS = 4096
"""Below it a scan takes some microseconds."""
SCAN, PUSH, FIND = 2.4, 220.0, 60.0
"""Nanoseconds, measured: per group and window of a scan, per partial that goes into the filter, per candidate."""
NOT_YET = -(1 << 63)
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1

Cells: TypeAlias = Callable[[int], tuple[Codes, Ints]]
"""The groups that have a partial in a closed pane, given by position, and the partials."""
Filter = TypeVar("Filter", bound=SubstreamIndex)


@dataclass(frozen=True)
class Limits:
    """For window i of a lookup: only groups whose component at `place` is in low[i] … high[i]."""

    place: int
    low: Ints
    high: Ints
    known: frozenset[int] = frozenset()
    """Every v of > v and < v that some query asks of this component."""

    @property
    def above(self) -> bool:
        """Whether every window has a lower bound only."""
        return bool((self.high == GREATEST).all() and (self.low > LEAST).all())

    @property
    def below(self) -> bool:
        """Whether every window has an upper bound only."""
        return bool((self.low == LEAST).all() and (self.high < GREATEST).all())


class CandidateSearch(ABC, Generic[Filter]):
    """The filter of one component, if it pays."""

    def __init__(self) -> None:
        self.filter: Filter | None = None
        self.served = 0
        """Windows that were answered by the filter."""
        self._fed = NOT_YET
        """The edge of the newest pane in the filter."""
        self._seen = NOT_YET
        """The edge of the newest pane at the last call."""
        self._balance = 0.0
        """What the filter has saved, or would have saved, less what it has cost."""
        self._found = 0.0
        """Candidates per window, as of the last time; before that the best is hoped for."""
        self._unfit = ""
        """Why there can be no filter, if so."""

    # -- what the filters differ in -------------------------------------------------------------------------------

    @abstractmethod
    def _thresholds(self, limits: Limits) -> tuple[Ints, bool] | None:
        """The threshold of each window, and whether the component is to stay below it; None: only a scan can tell."""

    @abstractmethod
    def _serves(self, built: Filter, thresholds: Ints) -> bool:
        """Whether the filter can be asked for these thresholds."""

    @abstractmethod
    def _build(self, thresholds: Ints, groups: int, limits: Limits) -> Filter:
        """A filter for these thresholds, without elements; the limits tell what else will be asked."""

    @abstractmethod
    def _feed(self, built: Filter, gids: Codes, ticks: Ints, partials: Ints) -> None:
        """The partials of one pane."""

    @abstractmethod
    def _look(self, built: Filter, starts: Ints, thresholds: Ints, below: bool) -> Candidates:
        """The groups of windows that end now."""

    @abstractmethod
    def _describe(self, built: Filter) -> str:
        """The filter by name, for EXPLAIN."""

    def _refusal(self, partials: Ints) -> str:
        """Why such partials cannot go into a filter, or nothing."""
        return ""

    def _scan_price(self) -> float:
        """Nanoseconds per group and window of a scan."""
        return SCAN

    def _push_price(self, limits: Limits) -> float:
        """Nanoseconds per partial that enters."""
        return PUSH

    # -- what they have in common ---------------------------------------------------------------------------------

    def find(
        self, edges: Ints, cells: Cells, groups: int, starts: Ints, ends: Ints, limits: Limits
    ) -> tuple[Ints, Codes] | None:
        """Offsets and candidate groups of the windows (start, end]; None when they are to be scanned."""
        if groups < FEWEST_GROUPS or self._unfit or not len(edges) or not len(ends):
            return None
        asked = self._thresholds(limits)
        if asked is None or not self._pays(edges, cells, groups, ends, asked[0], limits):
            return None
        if self.filter is None or not self._serves(self.filter, asked[0]):
            self.filter = self._build(asked[0], groups, limits)
            self._fed = NOT_YET
        return self._serve(self.filter, edges, cells, starts, ends, *asked)

    def select(self, live: Ints, groups: int) -> None:
        """The share group has renumbered its groups, of which there were so many."""
        if self.filter is not None:
            self.filter.reserve(groups)
            self.filter.select(live)

    def _pays(self, edges: Ints, cells: Cells, groups: int, ends: Ints, thresholds: Ints, limits: Limits) -> bool:
        built = self.filter is not None and self._serves(self.filter, thresholds)
        if built and int(np.min(ends)) < self._fed:
            return False  # elements that are newer than these windows are in the filter already
        newest = int(np.searchsorted(edges, np.max(ends), side="right"))
        price = self._push_price(limits) * len(cells(newest - 1)[0]) if newest else 0.0
        fresh = newest - int(np.searchsorted(edges, self._seen, side="right"))
        self._seen = max(self._seen, int(edges[newest - 1])) if newest else self._seen
        self._balance += (self._scan_price() * groups - FIND * self._found) * len(ends) - max(fresh, 0) * price
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
        built: Filter,
        edges: Ints,
        cells: Cells,
        starts: Ints,
        ends: Ints,
        thresholds: Ints,
        below: bool,
    ) -> tuple[Ints, Codes] | None:
        """Let time pass pane by pane, and look up the windows of each end when it has come."""
        sizes = np.zeros(len(ends), np.int64)
        pieces: list[Codes] = []
        order: list[Ints] = []
        for end in np.unique(ends):
            first = int(np.searchsorted(edges, self._fed, side="right"))
            for pane in range(first, int(np.searchsorted(edges, end, side="right"))):
                gids, partials = cells(pane)
                self._unfit = self._refusal(partials)
                if self._unfit:
                    self.filter = None
                    return None
                self._feed(built, gids, np.full(len(gids), edges[pane]), partials)
                self._fed = int(edges[pane])
            own = np.flatnonzero(ends == end)
            found = self._look(built, starts[own], thresholds[own], below)
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
            return (
                f"by a substream filter ({self._describe(self.filter)}): a lookup costs the groups that it finds, not "
                f"all {groups:,}"
            )
        if self._unfit:
            return f"by scanning all groups: {self._unfit}"
        if groups < FEWEST_GROUPS:
            return f"by scanning all groups: there are fewer than {FEWEST_GROUPS:,}"
        return "by scanning all groups: too few windows per change of a group for a substream filter to pay"
