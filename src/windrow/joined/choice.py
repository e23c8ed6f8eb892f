"""How the results on an axis are kept: BIJ, IJ or RJ, whatever costs least for the windows that are there.

Costs are per pane that passes, in steps along a row of groups, from what is known: the panes of each window, how often
it is due, how many groups there are and how many results come per pane. Many windows, or windows of few panes, are best
scanned together (BIJ, rule CS5); few windows of many panes are looked up each in 2 log b intervals (IJ, rule CS4), or
in the running sums between them (RJ) where these can be subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

ROW = 8.0
"""Whoever goes along a row of groups pays so much before the first of them."""
CELL = 5.0
"""A cell that is scanned costs as much as so many steps along a row; these numbers are measured, roughly."""
RESULT = 8.0
"""A result that is put into its place, of each level of IJ, costs as many."""
MOST_CELLS = 1 << 22
"""Panes times groups, beyond which only the cells that have results are kept."""
MUCH_BETTER = 2.0
"""A synopsis is changed for one that costs so many times less; with other queries, for any that costs less."""


@dataclass(frozen=True)
class Looked:
    """A window that is looked up: of how many panes, and how often per pane that passes."""

    panes: float
    rate: float


@dataclass(frozen=True)
class Load:
    """What an axis has to do."""

    windows: tuple[Looked, ...]
    """The different ones."""
    subtractable: bool
    groups: int = 1
    results: float = 1.0
    """Per pane that passes."""

    @property
    def longest(self) -> float:
        """Panes of the longest window."""
        return max((one.panes for one in self.windows), default=1.0)

    @property
    def costs(self) -> dict[str, float]:
        """Of each synopsis that can be taken."""
        row = ROW + self.groups
        cells = CELL * min(self.groups, max(1.0, self.results))
        level = log2(self.longest + 1) + 1
        scanned = due = 0.0
        for one in sorted(self.windows, key=lambda one: -one.panes):
            # Where a longer window is due it is found on the way.
            more = max(0.0, one.rate - due)
            scanned, due = scanned + more * one.panes, due + more
        found = {"bij": scanned * cells + 2 * RESULT * self.results}
        if self.longest * self.groups > MOST_CELLS:
            return found
        probes = sum(one.rate * 2 * log2(one.panes + 1) for one in self.windows)
        found["ij"] = (probes + 2) * row + level * RESULT * self.results
        if self.subtractable:
            found["rj"] = (2 + due) * len(self.windows) * row + RESULT * self.results
        return found


def choose(load: Load, now: str | None = None) -> str:
    """The cheapest; the one that is there `now` unless another is much better."""
    costs = load.costs
    best = min(costs, key=lambda name: costs[name])
    return now if now in costs and costs[now] <= MUCH_BETTER * costs[best] else best


def reason(name: str, costs: Mapping[str, float]) -> str:
    """For EXPLAIN: what it costs, and the others."""
    others = [f"{cost:,.0f} by {other.upper()}" for other, cost in sorted(costs.items()) if other != name]
    return f"a pane costs about {costs.get(name, 0):,.0f} steps, {' and '.join(others) or 'nothing else fits'}"


def windows_of(pairs: Sequence[tuple[int, int]], panes_per_tick: float) -> tuple[Looked, ...]:
    """Of (length, SLIDE): each different length once, as often as one of its queries is due."""
    rates: dict[int, float] = {}
    for length, slide in pairs:
        rates[length] = max(rates.get(length, 0.0), 1 / (slide * panes_per_tick))
    return tuple(Looked(max(1.0, length * panes_per_tick), rate) for length, rate in rates.items())
