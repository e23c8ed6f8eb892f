"""A query's share of a slice: the aggregates that it asks for, over which windows, and what it knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from windrow.aggregates import Aggregate
from windrow.expressions import Program
from windrow.language.hints import Hint
from windrow.plan.threshold import Threshold
from windrow.sharing.rules.described import INSENSITIVE
from windrow.synopses.workload import Expected
from windrow.windows.grid import Grid, edges_of
from windrow.windows.spec import BEGINNING, RangeWindow


@dataclass(frozen=True)
class Term:
    """An aggregate and the program of the value it takes (None counts rows)."""

    aggregate: Aggregate
    value: Program | None


def insensitive(terms: Iterable[Term]) -> bool:
    """Whether a value that comes twice changes nothing in any of these aggregates."""
    return all(term.aggregate.name in INSENSITIVE for term in terms)


@dataclass(eq=False)
class Member:
    """A query's share of a slice: its window, where its components stand, and since when its panes are complete."""

    window: RangeWindow
    slide: int
    terms: tuple[Term, ...]
    positions: tuple[tuple[int, ...], ...] = ()
    """Per term, the places of its components in the share group."""
    since: int = BEGINNING
    """Tuples with ts <= since are not in its panes."""
    next_due: int | None = None
    origin: int = 0
    """Its windows are due at origin + k * slide."""
    threshold: Threshold | None = None
    """Groups outside are not in its answers."""
    hint: Hint | None = None
    """The synopsis that it asks for."""

    @property
    def progressions(self) -> tuple[tuple[int, int], ...]:
        """The pane edges that its windows need."""
        return edges_of(self.window.length, self.slide, self.window.offset - self.origin)

    @property
    def limited(self) -> int | None:
        """The place of the component that its threshold is about."""
        return None if self.threshold is None else self.positions[self.threshold.aggregation][0]

    @property
    def oldest_needed(self) -> int | None:
        """The left edge of its newest window, which one-time queries may ask for again; None before it has started."""
        return None if self.next_due is None else self.window.start(self.next_due - self.slide)


def expected(members: Sequence[Member], grid: Grid) -> Expected:
    """Their windows on this grid, for the choice of synopses."""
    panes = sum(1 / step for step, _ in grid.progressions)
    lengths = [inf if one.window.length is None else one.window.length * panes for one in members]
    return Expected(tuple((length, 1 / (one.slide * panes)) for length, one in zip(lengths, members, strict=True)))
