"""Covers: which queries, together, have exactly the rows of another one (thesis 8.3.3).

    WHERE p = 'tcp'   WHERE p = 'udp'   cover   WHERE p IN ('tcp', 'udp')   and are disjoint

The thesis matches terms by their text; here predicates are compared as sets of rows, so that ranges that meet and
terms that are written otherwise are found too. If all predicates together do, every choice of up to MOST_SOURCES of the
MOST_CANDIDATES largest is tried, fewest first, and then one of up to MOST_TAKEN that takes whatever adds something:
some hundred tests, when a query is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from windrow.plan.predicates import Predicate

MOST_SOURCES = 4
MOST_CANDIDATES = 12
MOST_TAKEN = 32
MOST_SORTED = 256
"""So many candidates are put in order."""


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
    if not wanted.terms:
        return None  # no row is in it, and there is nothing to be had
    inside = [number for number, one in enumerate(given) if one.implies(wanted)]
    united: Cover | None = None
    # If all of them together lack something, no choice of them will do.
    if wanted.implies(*(given[number] for number in inside)):
        inside = _largest_first(inside, given)
        for chosen in _choices(inside):
            parts = [given[number] for number in chosen]
            if wanted.implies(*parts):
                if is_disjoint(parts):
                    return Cover(Combine.ADD, chosen)
                united = united or Cover(Combine.UNITE, chosen)
        apart = _apart(inside, given)
        if wanted.implies(*(given[number] for number in apart)):
            return Cover(Combine.ADD, apart)
        united = united or _united(wanted, inside, given)
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
        within = [number for number in outside if number != whole and given[number].implies(all_rows)]
        if not all_rows.implies(wanted, *(given[number] for number in within)):
            continue
        within = _largest_first(within, given)
        for chosen in (*_choices(within), _apart(within, given)):
            parts = [given[number] for number in chosen]
            if all_rows.implies(wanted, *parts) and is_disjoint(parts):
                return Cover(Combine.SUBTRACT, (whole,), chosen)
    return None


def _largest_first(numbers: Sequence[int], given: Sequence[Predicate]) -> list[int]:
    """Those that no other one contains, then the others: with many queries a choice of few is among the first."""
    largest: list[int] = []
    others: list[int] = []
    for number in numbers[:MOST_SORTED]:
        if any(given[number].implies(given[one]) for one in largest):
            others.append(number)
        else:
            others += [one for one in largest if given[one].implies(given[number])]
            largest = [one for one in largest if one not in others] + [number]
    return largest + others


def _choices(numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All choices of few among the first."""
    for size in range(1, MOST_SOURCES + 1):
        yield from combinations(numbers[:MOST_CANDIDATES], size)


def _apart(numbers: Sequence[int], given: Sequence[Predicate]) -> tuple[int, ...]:
    """Many that have no row in common: each that is disjoint from all before it."""
    taken: list[int] = []
    for number in numbers:
        if len(taken) < MOST_TAKEN and given[number].terms and all(given[number].disjoint(given[one]) for one in taken):
            taken.append(number)
    return tuple(taken)


def _united(wanted: Predicate, numbers: Sequence[int], given: Sequence[Predicate]) -> Cover | None:
    """Many that have all rows together: each that has a row which those before it lack."""
    taken: list[int] = []
    for number in numbers[:MOST_SORTED]:
        if len(taken) < MOST_TAKEN and not given[number].implies(*(given[one] for one in taken)):
            taken.append(number)
            if wanted.implies(*(given[one] for one in taken)):
                return Cover(Combine.UNITE, tuple(taken))
    return None
