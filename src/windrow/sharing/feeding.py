"""One batch into all slices of a stream: by its rows or, for derived slices, by the partials that others have of it.

    rows ─► source slice: partials of the batch ─┬─► its own panes
                                                 └─► those of the slices that are derived from it

The choice is made for each batch: partials pay when there are far fewer of them than rows. Both ways give the same
panes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected
from windrow.errors import QueryError
from windrow.expressions import Context, Program
from windrow.parallel import each
from windrow.sharing.covers import Combine
from windrow.sharing.member import Member, Term
from windrow.sharing.slice import Slice
from windrow.synopses.open_panes import AssignedPanes
from windrow.synopses.partials import Partials
from windrow.synopses.regroup import regrouped
from windrow.synopses.share_group import ShareGroup
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING, RangeWindow

FEWEST_ROWS = 512
"""A smaller batch is not worth the partials."""
PAYS = 4
"""A derived slice takes partials when there is at most one of them for so many rows."""

Deriving: TypeAlias = Literal["cost", "always", "never"]
"""When derived slices take partials: when it pays, whenever it can be done, or never."""

Failures: TypeAlias = "dict[Slice, dict[Member, QueryError]]"
Wanted: TypeAlias = "tuple[tuple[Component, ...], Program | None]"


@dataclass(eq=False)
class Handout:
    """A source slice, with a twin of it that holds one batch and keeps what all that depend on it need."""

    source: Slice
    dependants: tuple[Slice, ...]
    twin: Slice = field(init=False)
    grid: Grid = field(init=False)
    users: dict[Member, list[tuple[Slice, Member]]] = field(init=False, default_factory=dict)
    """Per member of the twin: who cannot go on without it."""

    def __post_init__(self) -> None:
        source = self.source
        self.twin = Slice(source.predicate, source.keys)
        members: dict[Wanted | None, Member] = {}
        for part in (source, *self.dependants):
            for member in part.members:
                for term in (None, *member.terms):
                    wanted = None if term is None else (term.aggregate.components, term.value)
                    if wanted not in members:
                        members[wanted] = self._stand_in(() if term is None else (term,))
                    self.users.setdefault(members[wanted], []).append((part, member))
        grids = [part.group.grid for part in (source, *self.dependants) if part.group is not None]
        self.grid = Grid.of([one for grid in grids for one in grid.progressions])
        self.twin.pin(self.grid, BEGINNING)

    def _stand_in(self, terms: tuple[Term, ...]) -> Member:
        member = Member(RangeWindow(1, 1), 1, terms)
        self.twin.add(member, None)
        return member

    def take(
        self, context: Context, ts: NDArray[np.int64], panes: Mapping[Grid, AssignedPanes]
    ) -> tuple[Partials, Failures]:
        """The partials of a batch, which are put into the source's panes, and who cannot go on."""
        assert self.twin.group is not None
        specs = self.twin.group.specs
        self.twin.group = ShareGroup([key.type for key in self.twin.keys], specs, self.grid)
        failed = self.by_user(self.twin.insert(context, ts, panes))
        partials = self.twin.group.partials()
        self.keep([partials])
        for member, error in self.source.failures().items():
            failed.setdefault(self.source, {}).setdefault(member, error)
        return partials, failed

    def by_user(self, failed: Mapping[Member, QueryError]) -> Failures:
        """What fails for the twin fails for those whom it stands for."""
        found: Failures = {}
        for stand_in, error in failed.items():
            for part, member in self.users[stand_in]:
                found.setdefault(part, {}).setdefault(member, error)
        return found

    def keep(self, parts: Sequence[Partials]) -> None:
        """Put the partials of a batch into the source's own panes."""
        group = self.source.group
        assert group is not None
        own = [(one, 1) for part in parts if len(one := self.for_slice(self.source, part))]
        if own and group.grid != self.grid:
            own = [(regrouped(own, group.dictionary.key_types, group.specs, group.grid), 1)]
        for part, _ in own:
            group.absorb(part, range(len(group.specs)))
            self.source.saved.share(int(part.rows.sum()), len(self.source.members))

    def for_slice(self, part: Slice, partials: Partials) -> Partials:
        """The keys and components that a slice needs, in its own order."""
        components = self.twin.components
        carried: set[int] = set()
        words = []
        for wanted in part.components:
            place = components.index(wanted)
            component, value = wanted
            if isinstance(component, Collected):  # the first of several questions carries the collection
                place = next(
                    k
                    for k, (one, given) in enumerate(components)
                    if isinstance(one, Collected) and one.store == component.store and given is value
                )
                words.append((partials.rows,) if place in carried else partials.words[place])
                carried.add(place)
            else:
                words.append(partials.words[place])
        keys = [partials.keys[self.source.keys.index(key)] for key in part.keys]
        return Partials(partials.edges, keys, partials.rows, tuple(words))


def derive(part: Slice, given: Mapping[Slice, tuple[Handout, Sequence[Partials]]]) -> None:
    """Put the partials that its sources have of a batch into the panes of a derived slice."""
    assert part.derivation is not None and part.group is not None
    group, parts = part.group, []
    for source in part.derivation.sources:
        handout, partials = given[source]
        parts += [
            (handout.for_slice(part, one), part.derivation.sign(source)) for one in partials if len(one)
        ]  # fmt: skip
    if parts:
        made = regrouped(parts, group.dictionary.key_types, group.specs, group.grid)
        part.derive(made, sum(len(one) for one, _ in parts), united=part.derivation.how is Combine.UNITE)


def feed(
    feeding: Feeding,
    context: Context,
    ts: NDArray[np.int64],
    panes: Mapping[Grid, AssignedPanes],
    derived: Sequence[Slice],
    *,
    worthwhile: bool,
) -> Failures:
    """One pass of a batch; the `derived` slices take partials, all others rows. Gives the members that cannot go on."""
    handouts = feeding.handouts(derived)
    by_partials = {*handouts, *derived}
    by_rows = [part for part in feeding.slices if part not in by_partials]
    work: list[Slice | Handout] = [*handouts.values(), *by_rows]
    given: dict[Slice, tuple[Handout, list[Partials]]] = {}
    failed: Failures = {}

    def one(item: Slice | Handout) -> tuple[Partials | None, Failures]:
        if isinstance(item, Handout):
            return item.take(context, ts, panes)
        return None, {item: item.insert(context, ts, panes)}

    for item, (partials, stopped) in zip(work, each(one, work, worthwhile=worthwhile), strict=True):
        for part, members in stopped.items():
            for member, error in members.items():
                failed.setdefault(part, {}).setdefault(member, error)
        if isinstance(item, Handout) and partials is not None:
            given[item.source] = item, [partials]
    each(lambda part: derive(part, given), derived, worthwhile=worthwhile)
    return failed


@dataclass(eq=False)
class Feeding:
    """The slices of a stream; made anew when queries come or go."""

    slices: Sequence[Slice]
    _known: dict[Slice, Handout] = field(default_factory=dict)

    def derived(self, oldest: int | None, newest: int | None, rows: float, deriving: Deriving) -> list[Slice]:
        """The slices that shall take partials of a batch with such rows, all behind `oldest` (None: nothing is known).

        A slice begins in the middle of a pane; partials of rows on both sides would be of no use to it.
        """
        if deriving == "never":
            return []
        found = []
        for part in self.slices:
            if part.derivation is None:
                continue
            begins = [one.begin for one in (part, *part.derivation.sources)]
            if any(begin != BEGINNING and (oldest is None or begin >= oldest) for begin in begins):
                continue
            span = 0 if oldest is None or newest is None else newest - oldest
            if deriving == "always" or _pays(part.derivation.sources, part, span, rows):
                found.append(part)
        return found

    def handouts(self, derived: Iterable[Slice]) -> dict[Slice, Handout]:
        """The sources of these slices."""
        sources = dict.fromkeys(s for part in derived if part.derivation is not None for s in part.derivation.sources)
        for source in sources:
            if source not in self._known:
                users = [one for one in self.slices if one.derivation is not None and source in one.derivation.sources]
                self._known[source] = Handout(source, tuple(users))
        return {source: self._known[source] for source in sources}


def _pays(sources: Sequence[Slice], part: Slice, span: int, rows: float) -> bool:
    """Whether a batch will have far fewer partials than rows, as far as its groups are known."""
    if rows < FEWEST_ROWS:
        return False
    entries = 0.0
    for source in sources:
        if source.group is None or part.group is None:
            return False
        groups = source.group.groups
        if not groups:
            return False  # nothing is known of them yet
        edges = {*source.group.grid.progressions, *part.group.grid.progressions}
        entries += groups * (1 + sum(span / step for step, _ in edges))
    return entries * PAYS <= rows
