"""What the rules look at: queries and synopses, described without an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from windrow.plan.predicates import TRUE, Predicate

Kind: TypeAlias = Literal["running", "interval", "basic_interval", "landmark", "rj", "ij", "bij"]
"""How partials are kept; the last three are for the results of a join, by the time at which they expire."""

SHARED_SCAN: frozenset[Kind] = frozenset({"basic_interval", "bij"})
"""They are read from the youngest interval to the oldest, so that every window length is answered on the way."""
OVER_JOINS: frozenset[Kind] = frozenset({"rj", "ij", "bij"})

_DATA: dict[str, tuple[str, ...]] = {
    "COUNT": ("count",),
    "SUM": ("sum", "count"),
    "AVG": ("sum", "count"),
    "MIN": ("min",),
    "MAX": ("max",),
    "VAR_POP": ("moments",),
    "VAR_SAMP": ("moments",),
    "STDDEV_POP": ("moments",),
    "STDDEV_SAMP": ("moments",),
}
_COUNTERS = ("counters",)
"""What all others need: how often each value occurs."""
INSENSITIVE = frozenset({"MIN", "MAX", "COUNT_DISTINCT", "SUM_DISTINCT", "AVG_DISTINCT"})
"""A value that comes twice changes nothing in these."""
SUBTRACTABLE = frozenset({"COUNT", "SUM", "AVG"})
"""f(X - Y) = f(X) - f(Y) for Y within X: of whole numbers, that is; floating sums round."""


@dataclass(frozen=True)
class Call:
    """An aggregate and the text of what it takes; `exact` when its values are no floating-point numbers."""

    name: str
    value: str = "*"
    exact: bool = True

    @property
    def data(self) -> frozenset[tuple[str, str]]:
        """What must be kept per interval: AVG needs a sum and a count, MEDIAN and TOP_K the same counters."""
        return frozenset((part, self.value) for part in _DATA.get(self.name, _COUNTERS))

    @property
    def insensitive(self) -> bool:
        """Whether duplicates change nothing."""
        return self.name in INSENSITIVE

    @property
    def subtractable(self) -> bool:
        """Whether what is in one set and not in a part of it can be told from both answers."""
        return self.name in SUBTRACTABLE and self.exact


@dataclass(frozen=True)
class Described:
    """A periodic aggregate query: one window length per stream that it joins, in ticks as its period."""

    streams: tuple[str, ...]
    windows: tuple[int, ...]
    slide: int
    calls: tuple[Call, ...]
    predicate: Predicate = TRUE
    keys: frozenset[str] = frozenset()
    rest: str = ""
    """HAVING, the select list, ORDER BY, LIMIT, OFFSET of the window: equal for queries with the same output."""

    @property
    def data(self) -> frozenset[tuple[str, str]]:
        """What must be kept per interval."""
        return frozenset().union(*(call.data for call in self.calls))

    @property
    def insensitive(self) -> bool:
        """Whether duplicates change nothing in any of its aggregates."""
        return all(call.insensitive for call in self.calls)

    @property
    def subtractable(self) -> bool:
        """Whether all its aggregates are."""
        return all(call.subtractable for call in self.calls)

    def every(self, slide: int) -> Described:
        """The same query with another period."""
        return replace(self, slide=slide)


@dataclass(frozen=True)
class Kept:
    """A synopsis: b intervals of s ticks, updated at phase + k·s, with what data of which rows, grouped how.

    Of a generalized synopsis over a join, the g oldest intervals also tell what is without results that only one of the
    windows would still have.
    """

    streams: tuple[str, ...]
    kind: Kind
    s: int
    b: int
    data: frozenset[tuple[str, str]]
    predicate: Predicate = TRUE
    keys: frozenset[str] = frozenset()
    phase: int = 0
    g: int = 0

    @property
    def aligned(self) -> tuple[int, int]:
        """Synopses with the same are updated at the same times."""
        return self.s, self.phase % self.s

    def intervals(self, window: int) -> int | None:
        """n with window = n·s and n <= b, if there is one."""
        n, rest = divmod(window, self.s)
        return n if not rest and 1 <= n <= self.b else None
