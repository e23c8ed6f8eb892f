"""A slice: the panes that all queries with the same stream, predicate and grouping share (thesis 8.2, rule SS1).

batch ─► predicate ─► keys, values ─► ShareGroup (panes) ─► lookups of every member query
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected
from windrow.aggregates.count import CountRows
from windrow.errors import QueryError
from windrow.expressions import Context, Program
from windrow.plan.predicates import Predicate
from windrow.sharing.edges import KnownEdges
from windrow.sharing.member import Member, Term, expected, insensitive
from windrow.sharing.saved import Saved
from windrow.synopses.chooser import Choice
from windrow.synopses.open_panes import AssignedPanes
from windrow.synopses.partials import Partials
from windrow.synopses.registry import admits, may_choose
from windrow.synopses.share_group import ShareGroup
from windrow.synopses.spec import ComponentSpec
from windrow.windows.grid import Grid, Progression
from windrow.windows.spec import BEGINNING

if TYPE_CHECKING:
    from windrow.sharing.derivation import Derivation


@dataclass(eq=False)
class Slice:
    """One predicate and grouping over one stream, with the panes that its members share."""

    predicate: Program | None
    keys: tuple[Program, ...]
    synopsis: str | None = None
    members: list[Member] = field(default_factory=list)
    group: ShareGroup | None = None
    earliest_due: int | None = None
    """No member is due before this; None while that is not known."""
    _values: list[Program] = field(default_factory=list)
    """The value columns; these and the component places are in the order in which the members first use them."""
    _since: list[int] = field(default_factory=list)
    """Per component place: from when on it knows every tuple."""
    edges: KnownEdges = field(default_factory=KnownEdges)
    """Where its panes end."""
    _begin: int = BEGINNING
    """Tuples up to here came, in part, before the slice: the others are not taken in either."""
    _forgotten: int = BEGINNING
    _hinting: dict[int, Member] = field(default_factory=dict)
    """Per component place: the first member that asks for a synopsis of it."""
    asked: dict[int, frozenset[int]] = field(default_factory=dict)
    """Per component place: every v that a member compares it with in HAVING."""
    _untold: bool = False
    """Members have come or gone since the share group was told which windows will be looked up."""
    selected: Predicate | None = None
    """The rows that the predicate keeps; None where nobody needs to know."""
    derivation: Derivation | None = None
    """The slices whose partials it takes, so that it need not look at the tuples."""
    saved: Saved = field(default_factory=Saved)
    _counted_since: int = BEGINNING
    """Up to here some rows are counted more than once: overlapping slices were united (rule SS4)."""

    # ---- queries come and go --------------------------------------------------------------------------------------

    def add(self, member: Member, newest: int | None, *, in_order: bool = False) -> None:
        """Merge a query into the slice; it uses whatever panes exist (thesis 8.2). `newest` is the stream's last ts.

        Where rows come `in_order`, none at or before `newest` comes again: the query begins right behind it.
        """
        grid = self.group.grid if self.group is not None else None
        if grid is None or not grid.covers(member.progressions):
            grid = self._grid({*self._needed_edges(), *member.progressions})
        # Tuples that came before this moment are in panes up to here, and in none of a new grid or component.
        fresh = BEGINNING if newest is None else newest
        if newest is not None and self.group is not None:
            if in_order:
                self.group.cut(newest)
            elif grid != self.group.grid or any(self.places(term) is None for term in member.terms):
                fresh, grid = self._end_pane(newest, grid)
        if self.group is None:
            self.group = ShareGroup([key.type for key in self.keys], [], grid)
            self._begin = self._forgotten = fresh
        positions: list[tuple[int, ...]] = []
        for term in member.terms:
            places = []
            for spec in self._specs(term):
                (place,) = self.group.add_components([spec])
                if place == len(self._since):
                    self._since.append(fresh)
                places.append(place)
            positions.append(tuple(places))
        self._use(grid, fresh)
        member.positions = tuple(positions)
        self._note_hint(member)
        known = [self._since[place] for places in positions for place in places]
        fit = self.edges.fit_since(member.progressions)
        since = max([self._forgotten, fit, *known, self.counted_since(member.terms)])
        member.since = fresh if in_order else self._aligned(since)
        self.members.append(member)
        self._untold = True
        self.earliest_due = None

    def _end_pane(self, newest: int, grid: Grid) -> tuple[int, Grid]:
        """End the pane that is being filled, so that something new begins behind it: where, and the grid for that."""
        assert self.group is not None
        fresh = self.group.end_pane(newest, grid)
        self._counted_since = min(self._counted_since, fresh)
        return fresh, grid.with_cuts([fresh])

    def remove(self, member: Member) -> None:
        """Take a query out with what only it used; the panes get coarser when nobody needs the finer edges."""
        self.members.remove(member)
        if not self.members or self.group is None:
            return
        self._free_unused()
        self._hinting.clear()
        for one in self.members:
            self._note_hint(one)
        grid = self._grid(self._needed_edges())
        self._use(grid, grid.ceil(self.group.newest_edge))
        self._untold = True

    def _note_hint(self, member: Member) -> None:
        """A hint is about what an aggregate is made of first; the count of values beside it serves others as well."""
        if member.hint is None:
            return
        for term, places in zip(member.terms, member.positions, strict=True):
            if may_choose(term.aggregate.components[0]):
                self._hinting.setdefault(places[0], member)

    def _follow_hints(self) -> None:
        """Keep every component as the hints of the members say."""
        assert self.group is not None
        members = [self._hinting.get(place) for place in range(len(self._since))]
        hints = [None if one is None else one.hint for one in members]
        self.group.force([None if hint is None else hint.synopsis for hint in hints])

    def hinting(self, term: Term) -> Member | None:
        """Who asks for a synopsis of what this aggregate is made of."""
        place = self._first_place(term)
        return None if place is None else self._hinting.get(place)

    def _first_place(self, term: Term) -> int | None:
        """Where the first component of a term stands; None if nobody has asked for it."""
        if self.group is None or (term.value is not None and term.value not in self._values):
            return None
        spec, specs = self._specs(term)[0], self.group.specs
        return specs.index(spec) if spec in specs else None

    def _expect(self) -> None:
        """Tell the share group which windows of each component will be looked up, once all that come now are known."""
        assert self.group is not None
        if not self._untold:
            return
        self._untold = False
        grid = self.group.grid
        users: list[list[Member]] = [[] for _ in self._since]
        for one in self.members:
            for place in {place for places in one.positions for place in places}:
                users[place].append(one)
        self._follow_hints()
        self.group.expect([expected(members, grid) for members in users])
        asked: dict[int, set[int]] = {}
        for one in self.members:
            if one.limited is not None and one.threshold is not None and one.threshold.constant is not None:
                asked.setdefault(one.limited, set()).add(one.threshold.constant)
        self.asked = {place: frozenset(constants) for place, constants in asked.items()}

    def explain(self, term: Term) -> Choice | None:
        """How the first component of a term is kept, and why; None if nobody has asked for it."""
        place = self._first_place(term)
        if self.group is None or place is None:
            return None
        self._expect()
        return self.group.explain(place)

    def _free_unused(self) -> None:
        """Free what no member uses; places and columns are then as if the members left had come one after the other."""
        assert self.group is not None
        places = list(dict.fromkeys(place for one in self.members for term in one.positions for place in term))
        if places == list(range(len(self._since))):
            return
        self._values = [self._values[column] for column in self.group.keep_components(places)]
        self._since = [self._since[place] for place in places]
        place_of = {old: new for new, old in enumerate(places)}
        for one in self.members:
            one.positions = tuple(tuple(place_of[place] for place in term) for term in one.positions)

    def _needed_edges(self) -> set[Progression]:
        """The edges of all members' windows and, while one of them still looks back to its `since`, those in use."""
        edges = {edge for one in self.members for edge in one.progressions}
        settled = all(one.since == BEGINNING or (one.oldest_needed or BEGINNING) >= one.since for one in self.members)
        if not settled and self.group is not None:
            edges.update(self.group.grid.without_cuts().progressions)
        return edges

    def _grid(self, progressions: Iterable[Progression]) -> Grid:
        """A grid with these edges, and where queries came with cuts for rows that may still come before them."""
        grid = Grid.of(progressions)
        if self.group is None:
            return grid
        complete = self.group.complete_until
        return grid.with_cuts(cut for cut in self.group.grid.cuts if complete is None or cut > complete)

    def _use(self, grid: Grid, since: int) -> None:
        """Rows to come get the edges of this grid; all panes behind `since` have them."""
        assert self.group is not None
        needed = [edge for one in self.members for edge in one.progressions]
        self.edges.use(grid, since, needed, self.group.complete_until)
        self.group.set_grid(grid)

    def _aligned(self, since: int) -> int:
        """The next edge that no pane lies on both sides of."""
        return since if since in (BEGINNING, self._begin) else self.edges.after(since)

    def _specs(self, term: Term) -> list[ComponentSpec]:
        column = None
        if term.value is not None:
            if term.value not in self._values:
                self._values.append(term.value)
            column = self._values.index(term.value)
        # What the synopsis of the connection cannot keep is here because a hint asks for another one.
        return [
            ComponentSpec(component, column, self.synopsis if admits(component, self.synopsis) else None)
            for component in term.aggregate.components
        ]

    # ---- rows in --------------------------------------------------------------------------------------------------

    def insert(
        self, context: Context, ts: NDArray[np.int64], panes: Mapping[Grid, AssignedPanes]
    ) -> dict[Member, QueryError]:
        """One pass of a batch: the rows that satisfy the predicate go into the panes.

        `panes` are those of all rows, for the grids that several slices use.

        Gives the members that cannot go on, because a value of theirs fails for some row; the others are served.
        """
        assert self.group is not None
        self._expect()
        kept: NDArray[np.bool_] | None = ts > self._begin if int(np.min(ts)) <= self._begin else None
        try:
            if self.predicate is not None:
                # WHERE NULL has Arrow's type null.
                truth = context.value(self.predicate).cast(pa.bool_())
                holds = pc.fill_null(truth, False).to_numpy(zero_copy_only=False)
                kept = holds if kept is None else kept & holds
            if kept is not None and not kept.any():
                return {}
            if kept is not None and kept.all():
                kept = None
            mask = None if kept is None else pa.array(kept)
            keys = [_filtered(context.value(key, kept), mask) for key in self.keys]
        except QueryError as error:
            return dict.fromkeys(self.members, error)
        failed: dict[Member, QueryError] = {}
        values: list[pa.Array | None] = []
        for program in self._values:
            value = _value(context, program, kept, mask)
            if isinstance(value, QueryError):
                users = [one for one in self.members if program in {term.value for term in one.terms}]
                failed.update(dict.fromkeys(users, value))
                value = None
            values.append(value)
        if kept is None:
            self.group.insert(ts, keys, values, panes.get(self.group.grid))
        else:
            self.group.insert(ts[kept], keys, values)
        self.saved.share(len(ts) if kept is None else int(np.count_nonzero(kept)), len(self.members))
        return self.failures() | failed

    def failures(self) -> dict[Member, QueryError]:
        """The members that use a component which could not take in some rows."""
        assert self.group is not None
        return {
            member: error
            for place, error in self.group.failures.items()
            for member in self.members
            if any(place in places for places in member.positions)
        }

    def derive(self, part: Partials, entries: int, *, united: bool) -> None:
        """Take in what other slices have of its rows, in so many entries: the partials of a batch, for all components.

        If they were `united`, rows that are in several of them are counted several times.
        """
        assert self.group is not None
        self._expect()
        if len(part):
            self.group.absorb(part, range(len(self.group.specs)))
            if united:
                self._counted_since = max(self._counted_since, int(part.edges.max()))
        self.saved.derive(int(part.rows.sum()), entries, len(self.members))

    def counted_since(self, terms: Iterable[Term]) -> int:
        """From here on every row is counted once, as far as these aggregates care."""
        return BEGINNING if insensitive(terms) else self._counted_since

    @property
    def components(self) -> list[tuple[Component, Program | None]]:
        """By place: the component, and the value that it takes."""
        assert self.group is not None
        return [(one.component, None if one.column is None else self._values[one.column]) for one in self.group.specs]

    def pin(self, grid: Grid, begin: int) -> None:
        """Slice for another slice elsewhere: with its edges, from where it begins."""
        assert self.group is not None
        self.group.set_grid(grid)
        self._begin = begin

    @property
    def begin(self) -> int:
        """Tuples up to here are not taken in."""
        return self._begin

    # ---- time passes ----------------------------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """The panes up to the watermark are complete."""
        assert self.group is not None
        self._expect()
        self.group.close(watermark)

    def forget(self) -> None:
        """Drop what no member looks at any more (all due times are answered)."""
        assert self.group is not None
        needed = [member.oldest_needed for member in self.members]
        known = [edge for edge in needed if edge is not None]
        if not known or len(known) < len(needed):
            return  # a member has not started yet
        self.earliest_due = min(member.next_due for member in self.members if member.next_due is not None)
        edges, edge = self.group.closed_edges, min(known)
        if len(edges) and edges[0] <= edge:
            self._forgotten = edge
            self.group.expire(edge)
            self.edges.forget(edge)
        if self.group.grid.cuts and self.group.complete_until is not None:
            self.group.set_grid(self.edges.without_cuts(self.group.complete_until))

    # ---- one-time queries -----------------------------------------------------------------------------------------

    def places(self, term: Term) -> tuple[int, ...] | None:
        """Where the components of an aggregate stand; None when no query keeps them."""
        assert self.group is not None
        if term.value is not None and term.value not in self._values:
            return None
        wanted, kept = self._specs(term), self.group.specs
        return tuple(kept.index(spec) for spec in wanted) if all(spec in kept for spec in wanted) else None

    @contextmanager
    def asking(self, terms: Sequence[Term]) -> Iterator[list[tuple[int, ...] | None]]:
        """Where the components of these aggregates stand, while a question is answered; None for what nobody keeps.

        A collection answers every question of its kind, so one that no query asks is lent a place; and rows are counted
        whoever asks.
        """
        assert self.group is not None
        before = len(self._since)
        try:
            yield [self.places(term) or self._lent(term) for term in terms]
        finally:
            self.group.take_back(len(self._since) - before)
            del self._since[before:]

    def _lent(self, term: Term) -> tuple[int, ...] | None:
        assert self.group is not None
        if term.aggregate.components == (CountRows(),):
            (place,) = self.group.add_components([ComponentSpec(CountRows())])
            if place == len(self._since):
                self._since.append(BEGINNING)
            return (place,)
        if term.value is None or term.value not in self._values:
            return None
        spec, *more = self._specs(term)
        if more or not isinstance(spec.component, Collected):
            return None
        for place, kept in enumerate(self.group.specs):
            same = isinstance(kept.component, Collected) and kept.component.store == spec.component.store
            if same and kept.column == spec.column:
                self._since.append(self._since[place])
                return tuple(self.group.add_components([spec]))
        return None

    def known_since(self, places: Iterable[int], terms: Iterable[Term] = ()) -> int:
        """The edge behind which these components know every tuple; BEGINNING if they know all there were."""
        known = [self._since[place] for place in places]
        since = max([self._begin, self._forgotten, self.counted_since(terms), *known])
        return self._aligned(since)

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, Any], bytes]:
        """The bookkeeping, JSON-able, and the panes; what belongs to a member is not in it."""
        assert self.group is not None
        self._expect()
        meta = {
            "since": list(self._since),
            "grids": self.edges.snapshot(),
            "begin": self._begin,
            "forgotten": self._forgotten,
            "counted": self._counted_since,
            "earliest_due": self.earliest_due,
        }
        return meta, self.group.snapshot()

    def restore(self, meta: Mapping[str, Any], panes: bytes) -> None:
        """Become what `snapshot` wrote: to be called when the same members have been added in the same order."""
        assert self.group is not None
        self._expect()
        self.group.restore(panes)
        if len(meta["since"]) != len(self.group.specs):
            raise ValueError(f"{len(self.group.specs)} components, but {len(meta['since'])} beginnings of them")
        self._since = list(meta["since"])
        self.edges.restore(meta["grids"])
        self._begin, self._forgotten, self._counted_since = meta["begin"], meta["forgotten"], meta["counted"]
        self.earliest_due = meta["earliest_due"]
        self._follow_hints()  # which may have changed since


def _value(
    context: Context, program: Program, kept: NDArray[np.bool_] | None, mask: pa.Array | None
) -> pa.Array | QueryError:
    """The values of the rows kept, or why some row has none."""
    try:
        return _filtered(context.value(program, kept), mask)
    except QueryError as error:
        return error


def _filtered(value: pa.Array, mask: pa.Array | None) -> pa.Array:
    return value if mask is None else value.filter(mask)
