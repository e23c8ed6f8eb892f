"""Covers: which queries, together, have exactly the rows of another one (thesis 8.3.3).

    WHERE p = 'tcp'   WHERE p = 'udp'   cover   WHERE p IN ('tcp', 'udp')   and are disjoint

The thesis matches terms by their text; here predicates are compared as sets of rows, so that ranges that meet and
terms that are written otherwise are found too. Up to MOST_SOURCES of MOST_CANDIDATES predicates are tried, fewest
first, and none if all of them together do not do: at most some hundred tests, when a query is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from windrow.sharing.predicates import Predicate

MOST_SOURCES = 4
MOST_CANDIDATES = 12


class Combine(Enum):
    """How the partials of the sources become those of the query."""

    ADD = "addition"
    """A disjoint cover: every row of the query is in exactly one source."""
    UNITE = "union"
    """Any cover: a row may be in several sources, which only some aggregates bear."""
    SUBTRACT = "subtraction"
    """A supercover, less a disjoint cover of what it has too much."""


@dataclass(frozen=True)
class Cover:
    """Sources by number; those in `less` are taken away from the first one in `more`."""

    how: Combine
    more: tuple[int, ...]
    less: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """All of them."""
        return self.more + self.less


def is_cover(wanted: Predicate, given: Sequence[Predicate]) -> bool:
    """Whether the given predicates have, together, exactly the rows of the wanted one."""
    return wanted.implies(*given) and all(one.implies(wanted) for one in given)


def is_subcover(wanted: Predicate, given: Sequence[Predicate]) -> bool:
    """Whether they have rows of the wanted one only, though perhaps not all."""
    return all(one.implies(wanted) for one in given)


def is_supercover(wanted: Predicate, given: Sequence[Predicate]) -> bool:
    """Whether they have all rows of the wanted one, and perhaps others."""
    return wanted.implies(*given)


def is_disjoint(given: Sequence[Predicate]) -> bool:
    """Whether no row is in two of them."""
    return all(one.disjoint(other) for one, other in combinations(given, 2))


def find_cover(
    wanted: Predicate, given: Sequence[Predicate], *, insensitive: bool = False, subtractable: bool = False
) -> Cover | None:
    """The best way to get the rows of the wanted predicate out of the given ones, which are in order of preference.

    Addition first, of as few as possible; then, if all aggregates are `insensitive` to duplicates, any cover; then
    subtraction, if all are `subtractable`.
    """
    inside = [number for number, one in enumerate(given) if one.implies(wanted)][:MOST_CANDIDATES]
    united: Cover | None = None
    # If all of them together lack something, no choice of them will do.
    for chosen in _choices(inside) if wanted.implies(*(given[number] for number in inside)) else ():
        parts = [given[number] for number in chosen]
        if wanted.implies(*parts):
            if is_disjoint(parts):
                return Cover(Combine.ADD, chosen)
            united = united or Cover(Combine.UNITE, chosen)
    if insensitive and united is not None:
        return united
    return _difference(wanted, given) if subtractable else None


def _difference(wanted: Predicate, given: Sequence[Predicate]) -> Cover | None:
    """Something that has too many rows, less predicates that have exactly those."""
    outside = [number for number, one in enumerate(given) if one.disjoint(wanted)]
    wholes = [number for number, one in enumerate(given) if wanted.implies(one)] if outside else []
    for whole in wholes[:MOST_CANDIDATES]:
        all_rows = given[whole]
        # A predicate that no row satisfies is disjoint even from the whole, which is not taken away from itself.
        within = [number for number in outside if number != whole and given[number].implies(all_rows)][:MOST_CANDIDATES]
        if not all_rows.implies(wanted, *(given[number] for number in within)):
            continue
        for chosen in _choices(within):
            parts = [given[number] for number in chosen]
            if all_rows.implies(wanted, *parts) and is_disjoint(parts):
                return Cover(Combine.SUBTRACT, (whole,), chosen)
    return None


def _choices(numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, MOST_SOURCES + 1):
        yield from combinations(numbers, size)
