"""How a share group finds the groups of a HAVING: a search per component, over its dense layout."""

from __future__ import annotations

from typing import Any, TypeAlias

from windrow.aggregates.extremes import Extreme, Min
from windrow.kernels.jit import Ints
from windrow.synopses.candidate_search import CandidateSearch, Limits
from windrow.synopses.dense import Dense
from windrow.synopses.extreme_search import ExtremeSearch
from windrow.synopses.layout import Layout, Within
from windrow.synopses.sum_search import SumSearch

Search: TypeAlias = CandidateSearch[Any]


class Searches:
    """By number of a component. They are made when somebody asks, from the panes, so no snapshot has them."""

    def __init__(self) -> None:
        self._by_number: dict[int, Search] = {}

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.filter.nbytes for one in self._by_number.values() if one.filter is not None)

    def get(self, number: int) -> Search | None:
        """The search of a component; None when nobody has asked yet."""
        return self._by_number.get(number)

    def clear(self) -> None:
        """The components have got other numbers."""
        self._by_number.clear()

    def select(self, live: Ints, groups: int) -> None:
        """The groups have been renumbered; there were so many."""
        for one in self._by_number.values():
            one.select(live, groups)

    def within(self, layout: Layout, number: int, starts: Ints, ends: Ints, groups: int, limits: Limits) -> Within:
        """The groups within the limits: candidates of a substream filter, checked, where that pays; or a scan."""
        first, last = layout.range_of(starts, ends)
        search = self._of(layout, number) if isinstance(layout, Dense) else None
        if isinstance(layout, Dense) and search is not None:
            found = search.find(
                layout.edges, lambda pane: layout.partials_of(number, pane, groups), groups, starts, ends, limits
            )
            if found is not None:
                return layout.checked(number, first, last, groups, limits.low, limits.high, *found)
        return layout.within(number, first, last, groups, limits.low, limits.high)

    def _of(self, layout: Dense, number: int) -> Search | None:
        """The search of a component; none for a sum that a hint keeps in another synopsis than running."""
        component = layout.tracked[number].component
        extreme = isinstance(component, Extreme)
        if not extreme and not layout.running(number):
            self._by_number.pop(number, None)
            return None
        if number not in self._by_number:
            made = ExtremeSearch(least=isinstance(component, Min)) if extreme else SumSearch(rows=number == 0)
            self._by_number[number] = made
        return self._by_number[number]
