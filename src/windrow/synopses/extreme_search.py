"""The groups of a HAVING about MAX or MIN of integers, by a filter with a level per threshold (002 section 4).

The filter is built with the thresholds of all queries that are registered then; one that comes later means building it
anew from the panes, which the search pays for like the first time. A group whose values are all NULL has the least
MAX of all, and so has one with the least of all integers: both are candidates, and HAVING tells them apart.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints
from windrow.synopses.candidate_search import CandidateSearch, Limits
from windrow.synopses.extreme_filter import ExtremeFilter
from windrow.synopses.substream_index import Candidates

MOST_THRESHOLDS = 32
"""Each takes two timestamps per group."""
SCANS, PUSHES = 4, 1 / 8
"""Measured: a scan combines rows, which takes so many times a subtraction; to move a timestamp takes such a part of
what it takes to put a partial into CI-COUNT."""


class ExtremeSearch(CandidateSearch[ExtremeFilter]):
    """Of MAX or, with `least`, of MIN."""

    def __init__(self, least: bool) -> None:
        super().__init__()
        self.least = least
        self._crowded = False

    def _thresholds(self, limits: Limits) -> tuple[Ints, bool] | None:
        """MAX or MIN > v, or < v: all that has one side."""
        self._crowded = len(limits.known) > MOST_THRESHOLDS
        if self._crowded:
            self.filter = None
            return None
        if limits.above:
            return limits.low - 1, False
        return (limits.high + 1, True) if limits.below else None

    def _serves(self, built: ExtremeFilter, thresholds: Ints) -> bool:
        return built.knows(thresholds)

    def _build(self, thresholds: Ints, groups: int, limits: Limits) -> ExtremeFilter:
        return ExtremeFilter([*limits.known, *np.unique(thresholds).tolist()], self.least, groups)

    def _feed(self, built: ExtremeFilter, gids: Codes, ticks: Ints, partials: Ints) -> None:
        built.update(gids, ticks, partials)

    def _look(self, built: ExtremeFilter, starts: Ints, thresholds: Ints, below: bool) -> Candidates:
        return built.beyond(starts, thresholds) if below == self.least else built.within(starts, thresholds)

    def _scan_price(self) -> float:
        return SCANS * super()._scan_price()

    def _push_price(self, limits: Limits) -> float:
        return PUSHES * (1 + len(limits.known)) * super()._push_price(limits)

    def _describe(self, built: ExtremeFilter) -> str:
        count = len(built.thresholds)
        return f"{'MIN' if self.least else 'MAX'}, {count} threshold{'s' if count > 1 else ''}"

    def describe(self, groups: int) -> str:
        """For EXPLAIN: how the groups are found now, and why."""
        if self._crowded:
            return f"by scanning all groups: there are more than {MOST_THRESHOLDS} different thresholds"
        return super().describe(groups)
