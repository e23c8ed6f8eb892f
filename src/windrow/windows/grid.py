"""The edges at which panes must end so that every window of a share group is a union of whole panes (002, section 3).

A query `RANGE T SLIDE s OFFSET d` is due at k·s and looks at (k·s-d-T, k·s-d]: it needs the edges of two
arithmetic progressions of step s. Panes are (lo, hi] between neighbouring edges, and are named by hi.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from windrow.windows.spec import MAX_TICK

Progression: TypeAlias = tuple[int, int]
"""(step, phase): the edges phase + k·step for every integer k."""

CUT = 1 << 62
"""The step of a progression with one edge only: where a query came while a pane was being filled."""
MAX_REFINEMENT = 4
"""A uniform grid may have this many times the edges that are needed; beyond it the union of progressions is kept."""


def edges_of(length: int | None, slide: int, offset: int = 0) -> tuple[Progression, ...]:
    """The progressions that a periodic RANGE window needs; an unbounded window has no left edge.

    >>> edges_of(length=10, slide=4, offset=1)
    ((4, 3), (4, 1))
    """
    right = (slide, -offset % slide)
    return (right,) if length is None else (right, (slide, (-offset - length) % slide))


@dataclass(frozen=True)
class Grid:
    """The union of a few arithmetic progressions of edges; uniform when there is only one.

    `ceil` costs O(progressions); the pane kernel needs it only when a row leaves the pane of the row before it.

    >>> Grid.of([(10, 0), (15, 0)])
    Grid(progressions=((5, 0),))
    >>> Grid.of([(1_000_000, 0), (1_000_000, 999_999)]).describe()
    'edges of 2 progressions'
    """

    progressions: tuple[Progression, ...]

    @classmethod
    def of(cls, progressions: Iterable[Progression]) -> Grid:
        """The coarsest grid with all these edges, or a uniform one when that is at most 4 times as fine."""
        given = set(progressions)
        kept = _reduce(one for one in given if one[0] != CUT)
        if any(one[0] == CUT for one in given):
            return cls.of(kept).with_cuts(cls(tuple(one for one in given if one[0] == CUT)).cuts)
        step = 0
        for other_step, phase in kept:
            step = gcd(step, other_step, phase - kept[0][1])
        needed = sum(1 / other_step for other_step, _ in kept)
        if len(kept) == 1 or 1 / step <= MAX_REFINEMENT * needed:
            return cls(((step, kept[0][1] % step),))
        return cls(kept)

    @classmethod
    def exactly(cls, progressions: Iterable[Progression]) -> Grid:
        """These edges and no others."""
        return cls(_reduce(progressions))

    @property
    def cuts(self) -> list[int]:
        """The edges that stand alone."""
        return [phase if phase < CUT // 2 else phase - CUT for step, phase in self.progressions if step == CUT]

    def with_cuts(self, cuts: Iterable[int]) -> Grid:
        """The same with edges at these instants too."""
        more = {(CUT, cut % CUT) for cut in cuts if self.ceil(cut) != cut}
        return Grid((*self.progressions, *sorted(more))) if more else self

    def without_cuts(self, upto: int = MAX_TICK) -> Grid:
        """The same without those up to some instant, at or before which no row comes any more."""
        kept = [cut for cut in self.cuts if cut > upto]
        return Grid(tuple(one for one in self.progressions if one[0] != CUT)).with_cuts(kept)

    @property
    def uniform(self) -> bool:
        """Whether all panes have the same length, but for cuts."""
        return len(self.progressions) - len(self.cuts) == 1

    def covers(self, progressions: Iterable[Progression]) -> bool:
        """Whether every edge of these progressions is an edge of this grid.

        A progression that is covered only by several others together counts as not covered: the answer may be a
        needless False (one more refinement), never a wrong True.
        """
        return all(_covered(one, self.progressions) for one in progressions)

    def ceil(self, ts: int) -> int:
        """The smallest edge >= ts (at most MAX_TICK): the name of the pane that holds ts."""
        return min(MAX_TICK, *(ts + (phase - ts) % step for step, phase in self.progressions))

    def describe(self) -> str:
        """For EXPLAIN: the pane length in ticks, or how many progressions of edges there are."""
        if not self.uniform:
            return f"edges of {len(self.progressions)} progressions"
        step, phase = self.progressions[0]
        return f"panes of {step} ticks" + (f" from {phase}" if phase else "")


def _covered(one: Progression, others: Iterable[Progression]) -> bool:
    step, phase = one
    return any(step % other_step == 0 and (phase - other) % other_step == 0 for other_step, other in others)


def _reduce(progressions: Iterable[Progression]) -> tuple[Progression, ...]:
    """Sorted, phases in [0, step), without those whose edges another one has."""
    kept: list[Progression] = []
    for step, phase in sorted({_checked(one) for one in progressions}):
        # Sorted by step, so only an earlier (finer) progression can cover a later one.
        if not _covered((step, phase), kept):
            kept.append((step, phase))
    if not kept:
        raise ValueError("a grid needs at least one progression of edges, found none")
    return tuple(kept)


def _checked(one: Progression) -> Progression:
    step, phase = one
    if not 0 < step <= MAX_TICK:
        raise ValueError(f"the step of a grid must be between 1 and {MAX_TICK} ticks, found {step}")
    return step, phase % step
