"""Probing: a question that no slice has is answered by looking its window up in several (thesis 8.3.3, SS4, CS6, CS7).

    WHERE p = 'tcp' GROUP BY a, b  ─► its window at τ ─┐
                                                       ├─► added, united or subtracted ─► WHERE p IN ('tcp', 'udp')
    WHERE p = 'udp'                ─► its window at τ ─┘

It is the other way to share state: a derived slice has panes of its own and takes partials of every batch, a question
has none and takes those of one window. τ is the newest instant at which the panes of all sources end and have the
window. Cost: a lookup per source and O(groups · log groups), and at most some thousand tests of predicates; space
O(groups), while the question is answered. Nothing that the sources keep changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from windrow.aggregates import aggregate
from windrow.aggregates.collected import Collected
from windrow.sharing.covers import Combine
from windrow.sharing.derivation import Derivation, can_be_regrouped, combination, has_finer_groups, terms_of
from windrow.sharing.member import Member, Term
from windrow.sharing.saved import Probed
from windrow.sharing.slice import Slice
from windrow.synopses.partials import Partials
from windrow.synopses.regroup import regrouped
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING, MAX_TICK, RangeWindow
from windrow.windows.watermark import Watermark

MOST_COMPARED = 1024
"""So many slices that have the aggregates, the newest, are looked at; more than for a query, which can do without."""
MOST_INSTANTS = 64
"""So many instants are tried, the newest first, where the panes of the sources end at different ones."""
WHOLE = Grid(((1, 0),))
"""The window is one pane, (0, 1]."""
ROWS = Term(aggregate("COUNT"), None)
EVERY = 1 << 62
"""TOP_K of so many values is all of them, with their frequencies."""


@dataclass(frozen=True)
class Probe:
    """How a question is answered: a slice for nothing but its answer, the sources, and the window at τ."""

    part: Slice
    derivation: Derivation
    tau: int
    start: int
    end: int

    def fill(self) -> Probed:
        """Look the window up in each source and put together what is found; tells what that has saved."""
        group, found, saved = self.part.group, [], Probed(questions=1)
        assert group is not None
        for source in self.derivation.sources:
            partials = self._looked_up(source)
            saved.lookups += 1
            self._note(saved, source, partials)
            if partials.rows.any():
                found.append((partials, self.derivation.sign(source)))
        if found:
            made = regrouped(found, group.dictionary.key_types, group.specs, WHOLE)
            group.absorb(made, range(len(group.specs)))
        self.part.close(MAX_TICK)
        return saved

    def _note(self, saved: Probed, source: Slice, partials: Partials) -> None:
        """The panes and tuple updates that a slice of its own would have needed for the window."""
        assert source.group is not None
        first, last = np.searchsorted(source.group.closed_edges, [self.start, self.end], side="right")
        saved.panes = max(saved.panes, int(last - first))
        # Of rows that are counted more than once nobody knows how many they are.
        rows = int(partials.rows.sum()) if _counts(source, self.start) else 0
        if self.derivation.how is Combine.UNITE:
            saved.updates = max(saved.updates, rows)
        else:
            saved.updates += self.derivation.sign(source) * rows

    def _looked_up(self, source: Slice) -> Partials:
        """What a source has of the window, in the keys and components of the question."""
        group, part = source.group, self.part
        assert group is not None
        source.close(self.tau)
        with source.asking(_needed(part)) as places:
            (place_of_rows,), *others = [one for one in places if one is not None]
            asked = list(dict.fromkeys([place_of_rows, *(place for one in others for place in one)]))
            found = group.lookup([self.start], [self.end], asked)
            keys = group.keys(found)
        words = dict(zip(asked, found.words, strict=True))
        rows = words[place_of_rows][0]
        place_of = {
            (component, term.value): place
            for term, one in zip(terms_of(part), others, strict=True)
            for component, place in zip(term.aggregate.components, one, strict=True)
        }
        chosen, carried = [], set[int]()
        for wanted in part.components:
            place = place_of[wanted]
            # The first of several questions to a collection carries it.
            chosen.append((rows,) if place in carried else words[place])
            carried.update((place,) if isinstance(wanted[0], Collected) else ())
        ones = np.ones(len(rows), np.int64)
        return Partials(ones, [keys[source.keys.index(key)] for key in part.keys], rows, tuple(chosen))


def question(part: Slice, terms: Sequence[Term]) -> Member:
    """Make of an empty slice one that holds the answer to a question: a single pane."""
    member = Member(RangeWindow(1, 1), 1, tuple(terms))
    part.add(member, None)
    part.pin(WHOLE, BEGINNING)
    return member


def find_probe(
    part: Slice, window: RangeWindow, slices: Iterable[Slice], mark: Watermark, *, finished: bool
) -> Probe | None:
    """How the `question` of a window is answered from slices, which are in order of preference; None if it is not.

    Sources that lack an aggregate, an edge of the window or some of its tuples are left out before a cover is searched.
    """
    if mark.value is None or not can_be_regrouped(part):
        return None
    finer = ((one, _known_since(one, part)) for one in slices if has_finer_groups(one, part))
    known = dict(islice(((one, since) for one, since in finer if since is not None), MOST_COMPARED))
    limit, best = mark.value, max
    if finished and mark.newest is not None and known:
        # All is complete: the first instant at which the panes of the last tuple end.
        limit, best = max(mark.newest, min(one.edges.floor(mark.value) for one in known)), min
    for _ in range(MOST_INSTANTS if known else 0):
        edges = {one: one.edges.ceil(limit) if best is min else one.edges.floor(limit) for one in known}
        tau = best(edges.values())
        start, end = window.start(tau), window.end(tau)
        assert start is not None
        ready = [
            one
            for one, edge in edges.items()
            if edge == tau and known[one] <= start and one.edges.has(start) and one.edges.has(end)
        ]
        found = combination(part, ready, subtracting=all(_counts(one, start) for one in ready))
        if found is not None:
            return Probe(part, found, tau, start, end)
        others = [edge for edge in edges.values() if edge != tau]
        if not others:
            break
        limit = best(others)  # before it there is no instant at which more of them are ready
    return None


def _counts(source: Slice, since: int) -> bool:
    """Whether every row behind this edge is counted once."""
    return source.counted_since((ROWS,)) <= since


def _known_since(source: Slice, part: Slice) -> int | None:
    """From where on a source knows what the question needs; None if it lacks an aggregate."""
    with source.asking(_needed(part)) as found:
        places = [one for one in found if one is not None]
        if len(places) < len(found):
            return None
        return source.known_since([place for one in places for place in one], terms_of(part))


def _needed(part: Slice) -> list[Term]:
    """What to look up: the rows, and each aggregate of the question."""
    return [ROWS, *(_in_full(term) for term in terms_of(part))]


def _in_full(term: Term) -> Term:
    """In place of an answer out of a collection, the collection itself; other words can be put together as they are."""
    (first, *_) = term.aggregate.components
    return Term(aggregate("TOP_K", first.store.kind, (EVERY,)), term.value) if isinstance(first, Collected) else term
