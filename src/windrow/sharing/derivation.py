"""A derived slice: one that does not look at tuples, but takes the partials of other slices (rules SS4 and GB).

    WHERE p = 'tcp' GROUP BY a, b  ─┐ partials of a batch
                                    ├─► added, united or subtracted ─► WHERE p IN ('tcp', 'udp') GROUP BY a
    WHERE p = 'udp' GROUP BY a      ─┘

It costs O(groups) per batch instead of O(tuples). Its panes are its own, and hold the same as if it had looked at the
tuples itself: so it can go over from one to the other, or to other sources, between any two batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from windrow.aggregates.component import Subtractable
from windrow.plan.predicates import Predicate
from windrow.sharing.covers import Combine, find_cover
from windrow.sharing.member import Term, insensitive
from windrow.sharing.rules.state import SS4, RollUp
from windrow.sharing.slice import Slice
from windrow.synopses.regroup import regroupable

MOST_COMPARED = 256
"""So many slices, the newest, are looked at as sources of another one."""
MOST_SERVED = 8
"""So many slices, the newest that have the rows of a new one, are looked at again when it comes."""


@dataclass(frozen=True)
class Derivation:
    """The sources of a slice, and what to do with their partials; those in `less` are subtracted."""

    how: Combine
    more: tuple[Slice, ...]
    less: tuple[Slice, ...] = ()

    @property
    def sources(self) -> tuple[Slice, ...]:
        """All of them."""
        return self.more + self.less

    def sign(self, source: Slice) -> int:
        """Whether its partials are added or subtracted."""
        return -1 if source in self.less else 1

    def rules(self, part: Slice) -> tuple[str, ...]:
        """By which rules: a cover of the predicate, a roll-up of the groups, or both."""
        rolled = any(one.keys != part.keys for one in self.sources)
        same = len(self.sources) == 1 and self.sources[0].predicate is part.predicate
        covered = not (rolled and same)
        return ((SS4.name,) if covered else ()) + ((RollUp.name,) if rolled else ())


def subtractable(terms: Iterable[Term]) -> bool:
    """Whether all these aggregates can be subtracted, and cannot fail on rows that are subtracted later."""
    return all(
        (term.value is None or term.value.column is not None)
        and all(isinstance(component, Subtractable) for component in term.aggregate.components)
        for term in terms
    )


def terms_of(part: Slice) -> list[Term]:
    """The aggregates of all members."""
    return [term for member in part.members for term in member.terms]


def can_be_regrouped(part: Slice) -> bool:
    """Whether the partials of all its aggregates can be put together without loss."""
    return part.group is not None and all(regroupable(spec.component) for spec in part.group.specs)


def is_source(source: Slice, part: Slice) -> bool:
    """Whether the groups of a slice can be put together to those of another one.

    Keys that only the source has are plain columns: no row makes them fail, so the one never fails for the other.
    """
    if source is part or source.derivation is not None:
        return False
    return has_finer_groups(source, part) and can_be_regrouped(source)


def has_finer_groups(source: Slice, part: Slice) -> bool:
    """Whether every group of a slice is in one group of another, or the same."""
    if source.selected is None or not source.members or not all(key in source.keys for key in part.keys):
        return False
    return all(key.column is not None for key in source.keys if key not in part.keys)


def find_derivation(part: Slice, others: Sequence[Slice]) -> Derivation | None:
    """How a slice can be had from others, which are in order of preference; None if it must look at the tuples."""
    if not part.members or not can_be_regrouped(part):
        return None
    return combination(part, list(islice((one for one in others if is_source(one, part)), MOST_COMPARED)))


def combination(part: Slice, sources: Sequence[Slice], *, subtracting: bool = True) -> Derivation | None:
    """Which of these slices, all of them with finer groups, have together what another one has, and how."""
    if part.selected is None:
        return None
    finer = sorted(sources, key=lambda one: len(one.keys))  # fewer groups to put together
    for one in finer:
        if one.predicate is part.predicate:
            return Derivation(Combine.ADD, (one,))
    if not part.selected.transparent:
        return None  # only the very same condition is known to hold, and to fail, for the same rows
    known: list[tuple[Slice, Predicate]] = [
        (one, one.selected) for one in finer if one.selected is not None and one.selected.transparent
    ]
    terms = terms_of(part)
    plain = all(key.column is not None for key in part.keys)
    found = find_cover(
        part.selected,
        [rows for _, rows in known],
        insensitive=insensitive(terms),
        subtractable=subtracting and plain and subtractable(terms),
    )
    if found is None:
        return None
    return Derivation(found.how, *(tuple(known[n][0] for n in chosen) for chosen in (found.more, found.less)))


def still_holds(part: Slice, alive: Set[Slice]) -> bool:
    """Whether a derivation can go on, now that queries have come or gone."""
    derivation = part.derivation
    if derivation is None or not can_be_regrouped(part):
        return False
    if not all(source in alive and is_source(source, part) for source in derivation.sources):
        return False
    if derivation.how is Combine.UNITE:
        return insensitive(terms_of(part))
    return derivation.how is Combine.ADD or subtractable(terms_of(part))


def plan_sharing(slices: Sequence[Slice], fresh: Slice | None = None) -> None:
    """Decide which slices of a stream are derived from which, after a query has come or gone; `fresh` is a new slice.

    A new slice is derived from those that are there, if they have it; else those may be derived from it. A slice that
    others are derived from stays as it is.
    """
    alive = set(slices)
    orphans = [part for part in slices if part.derivation is not None and not still_holds(part, alive)]
    for part in orphans:
        part.derivation = None
    newest = list(reversed(slices))
    for part in dict.fromkeys([*orphans, *(() if fresh is None else (fresh,))]):
        _derive(part, newest)
    if fresh is not None and fresh.derivation is None:
        plain = (part for part in newest[:MOST_COMPARED] if part.derivation is None and _might_serve(fresh, part))
        for part in list(islice(plain, MOST_SERVED)):
            _derive(part, newest)


def _derive(part: Slice, others: Sequence[Slice]) -> None:
    used = any(part in one.derivation.sources for one in others if one.derivation is not None)
    if part.derivation is None and not used:
        part.derivation = find_derivation(part, others)


def _might_serve(source: Slice, part: Slice) -> bool:
    """Whether a new slice can have a part in the derivation of an old one."""
    if not is_source(source, part) or source.selected is None or part.selected is None:
        return False
    within = source.selected.transparent and part.selected.transparent and source.selected.implies(part.selected)
    return source.predicate is part.predicate or within
