"""Windows that slide over frequency counts: each entry enters and leaves, whatever RANGE / SLIDE is.

The windows of one lookup are visited in an order in which little moves between neighbours: as they are asked for
(query by query, ascending), or all together by their ends, whichever moves less. COUNT and SUM DISTINCT are O(1) per
move and answer; a quantile is O(log n) per move and answer (a Fenwick tree over the n different values); TOP_K and
MODE look at the values present in the window once per answer. Space O(entries of the windows), during a lookup only.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windrow.aggregates.extremes import unordered
from windrow.kernels import frequency, kll
from windrow.kernels.counting import number_pairs
from windrow.kernels.jit import Codes, Floats, Ints
from windrow.synopses.collection import Windows


class Sliding:
    """Answers from the entries low[w] .. high[w]-1 of each window w; groups, codes and counts are those of all."""

    def __init__(self, windows: Windows, low: Ints, high: Ints, entries: tuple[Ints, Ints, Ints]) -> None:
        self.windows = windows
        begin, end = (int(low.min()), int(high.max())) if len(low) else (0, 0)
        self._groups, self._codes, self._counts = (np.ascontiguousarray(part[begin:end]) for part in entries)
        self._order, self._moves, self.moved = _cheapest(low - begin, high - begin)
        self._present: Codes = np.ascontiguousarray(windows.present, np.int32)

    @cached_property
    def _places(self) -> tuple[Codes, Ints, Ints, Ints]:
        """The place of each entry; group and code of each place; the first place of each group, and the end."""
        numbers = np.empty(len(self._codes), np.int32)
        firsts, _ = number_pairs(self._groups, self._codes, numbers)
        groups, codes = self._groups[firsts], self._codes[firsts]
        order = np.lexsort((codes, groups))
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        groups = groups[order]
        starts = np.searchsorted(groups, np.arange(self.windows.groups + 1))
        return place[numbers], groups, codes[order], starts

    @cached_property
    def totals(self) -> Ints:
        """How many values each row has."""
        total = np.zeros(max(self.windows.groups, 1), np.int64)
        return frequency.totals(*self._visits, self._groups, self._counts, total)

    @cached_property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """How many different values each row has, and the sums of the low and high halves of their codes."""
        places, groups, codes, _ = self._places
        state = np.zeros((max(self.windows.groups, 1), 3), np.int64)
        count, low, high = frequency.distinct(*self._visits, places, self._counts, groups, codes, state)
        return count, low, high

    def select(self, positions: Ints) -> Ints:
        """The codes at positions [k, rows] of each row's sorted values; 0 where the position is 0."""
        places, _, codes, starts = self._places
        return frequency.select(*self._visits, places, self._counts, starts, codes, positions)

    def ranked(self, many: int) -> tuple[Ints, Ints, Ints]:
        """Codes and counts of each row's most frequent values, and how many each row has of them."""
        places, groups, codes, starts = self._places
        lengths = np.minimum(self.distinct[0], many)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        best, counts = frequency.ranked(*self._visits, places, self._counts, starts, groups, bounds)
        return codes[best], counts, lengths

    def levels(self, capacities: Ints, *, floats: bool) -> tuple[Ints, Ints, Ints, Ints]:
        """Each row's values as levels of a KLL sketch (see `kernels.kll`); of floats without NaN.

        The codes of all items, the items per row and level, the values per row, the least and the greatest code.
        """
        places, _, codes, starts = self._places
        stops = starts[1:]
        if floats and len(codes):
            # NaN comes last in its group.
            stops = stops - ((np.diff(starts) > 0) & np.isnan(unordered(codes[stops - 1])))
        bounds = np.concatenate([[0], np.cumsum(np.minimum(self.totals, capacities[-1]))])
        items, sizes, totals, extremes = kll.levels(
            *self._visits, places, self._counts, starts, stops, capacities, bounds
        )
        many = sizes.sum(axis=1)
        used = np.arange(int(many.sum())) + np.repeat(bounds[:-1] - (np.cumsum(many) - many), many)
        if not len(codes):
            return codes, sizes, totals, extremes
        return codes[items[used]], sizes, totals, codes[extremes]

    def float_sums(self) -> NDArray[np.float64]:
        """The sum of each row's different values, which are floats."""
        places, groups, codes, starts = self._places
        values: Floats = unordered(codes)
        return frequency.sum_floats(*self._visits, places, self._counts, starts, groups, values)

    @property
    def _visits(self) -> tuple[Ints, Ints, Ints, Codes]:
        return self._order, self._moves, self.windows.offsets, self._present


def _cheapest(low: Ints, high: Ints) -> tuple[Ints, Ints, int]:
    """The order of visits that moves less, its moves, and how many entries move."""
    best: tuple[Ints, Ints, int] | None = None
    for order in (np.arange(len(low)), np.lexsort((low, high))):
        moves = np.empty((len(low), frequency.PIECES, 2), np.int64)
        cost = frequency.plan_moves(order, low, high, moves)
        if best is None or cost < best[2]:
            best = order, moves, cost
    assert best is not None
    return best
