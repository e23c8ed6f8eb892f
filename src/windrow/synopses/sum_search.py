"""The groups of a HAVING about COUNT or SUM, by CI-COUNT or CI-SUM over pane partials (002 sections 4.1 and 4.2)."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints
from windrow.synopses.candidate_search import GREATEST, CandidateSearch, Limits
from windrow.synopses.substream_filter import SubstreamFilter
from windrow.synopses.substream_index import Candidates

LEVELS_PER_SIZE = 2
MOST = 1 << 40


class SumSearch(CandidateSearch[SubstreamFilter]):
    """Of a component that is subtracted; `rows` says that it counts rows. Partials that do not fit are negative."""

    def __init__(self, rows: bool) -> None:
        super().__init__()
        self.rows = rows

    def _thresholds(self, limits: Limits) -> tuple[Ints, bool] | None:
        """COUNT or SUM > v for v ≥ 0, or COUNT(*) < v: what a filter can decide."""
        if limits.above and (limits.low >= 1).all():
            asked = limits.low - 1, False
        elif self.rows and (limits.low <= 1).all() and (limits.high >= 0).all() and (limits.high < GREATEST).all():
            asked = limits.high + 1, True
        else:
            return None
        return asked if int(np.max(asked[0])) <= MOST else None

    def _serves(self, built: SubstreamFilter, thresholds: Ints) -> bool:
        return built.most >= int(np.max(thresholds))

    def _build(self, thresholds: Ints, groups: int, limits: Limits) -> SubstreamFilter:
        return SubstreamFilter(LEVELS_PER_SIZE, min(4 * max(int(np.max(thresholds)), 1), MOST), groups)

    def _feed(self, built: SubstreamFilter, gids: Codes, ticks: Ints, partials: Ints) -> None:
        built.update(gids, ticks, partials)

    def _look(self, built: SubstreamFilter, starts: Ints, thresholds: Ints, below: bool) -> Candidates:
        return built.below(starts, thresholds) if below else built.above(starts, thresholds)

    def _refusal(self, partials: Ints) -> str:
        if len(partials) and int(np.min(partials)) < 0:
            return "a substream filter needs sums that are not negative"
        return ""

    def _describe(self, built: SubstreamFilter) -> str:
        return f"{'CI-COUNT' if self.rows else 'CI-SUM'}, p = {built.p}"
