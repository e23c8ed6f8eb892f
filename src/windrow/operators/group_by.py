"""Continuous γ: per group one row of aggregates, replaced at every instant at which it changes (thesis 3.3.1, 3.5).

The rows that begin and end in an epoch are events; events of one group at one instant make a cell; the aggregates are
asked once for all cells, and the cells become rows that last until the next cell of their group. What is kept depends
on the aggregate:

    counts, exact integer sums     running totals                O(1) per event
    sums of doubles                exact fixed-point totals      O(1) per event
    variances                      exact sums and squares        O(1) per event
    COUNT, SUM, AVG (DISTINCT)     copies of each value          O(1) per event
    MIN, MAX                       a heap of rows per group      O(log n) per event
    quantiles, MODE, TOP_K,
    sketches, those of the user    the rows of each group        O(rows of the group) per change

Rows with a known end are held until then. Rows whose end nobody knows are held only for heaps and contents: totals take
what a negative tuple says. Space: held rows and live groups; groups without rows are forgotten, amortised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import Aggregate
from windrow.aggregates.component import Subtractable
from windrow.aggregates.count import CountRows
from windrow.aggregates.extremes import Extreme
from windrow.aggregates.moments import Moments
from windrow.aggregates.sums import SumFloats
from windrow.expressions import Context, Program
from windrow.kernels.changes import Flags, make_cells, replace_rows
from windrow.kernels.jit import Codes, Ints
from windrow.operators.group_contents import GroupContents
from windrow.operators.group_events import Events, Kept, Part
from windrow.operators.operator import Operator
from windrow.operators.running_distinct import RunningDistinct, is_of_distinct
from windrow.operators.running_extremes import RunningExtremes
from windrow.operators.running_floats import RunningFloats
from windrow.operators.running_moments import RunningMoments
from windrow.operators.running_totals import RunningTotals
from windrow.state.held_rows import HeldRows
from windrow.state.lists import resized
from windrow.state.rows import NEVER, Delta, Epoch, Rows
from windrow.state.slot_column import column
from windrow.synopses.groups import Groups
from windrow.synopses.snapshot import numpy_of, prefixed, within

FEW = 1024
"""So many groups without rows are never worth looking for."""
ROWS: Part = (CountRows(), None)


class Term(Protocol):
    """An aggregate and the program of the value it takes (None counts rows)."""

    @property
    def aggregate(self) -> Aggregate: ...
    @property
    def value(self) -> Program | None: ...


class GroupBy(Operator):
    """The columns of the output are the keys, then one per term.

    Without keys there is one group, also while it has no rows: `begin` tells from when on.
    """

    name = "group_by"

    def __init__(self, keys: Sequence[Program], terms: Sequence[Term], schema: pa.Schema) -> None:
        self.schema = schema
        self._keys, self._terms = tuple(keys), tuple(terms)
        self._groups = Groups([key.type for key in keys])
        parts = dict.fromkeys([ROWS, *(part for term in terms for part in _parts(term))])
        self._programs = tuple(dict.fromkeys(program for _, program in parts if program is not None))
        self._held = HeldRows([program.type for program in self._programs])
        self._kept = _kept(list(parts), self._held, self._programs)
        self._matched = any(isinstance(one, RunningExtremes | GroupContents) for one in self._kept)
        """Whether a negative tuple must find the row that it ends."""
        self._answers = [column(schema.field(len(keys) + i).type) for i in range(len(terms))]
        """Of each group, the aggregates in its standing row."""
        self._standing: Flags = np.zeros(0, np.bool_)
        self._place: Codes = np.zeros(0, np.int32)
        self._purge_at = FEW
        self._first: int | None = None
        self._begins: int | None = None

    def begin(self, first: int) -> None:
        """There is an answer from this instant on, if there are no keys; to be told before the step of its epoch."""
        if not self._keys:
            self._first = self._begins = first

    # ---- epochs -----------------------------------------------------------------------------------------------------

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Events, cells, answers, rows."""
        (delta,) = inputs
        came, cut = delta.came, delta.cut
        came_groups, came_values = self._evaluated(came)
        cut_groups, cut_values = self._evaluated(cut)
        self._grow()
        # Before rows come, since a negative tuple is never about a row of its own epoch.
        cut_slots, finished = self._cut(cut, cut_groups, cut_values)
        came_slots = self._insert(came, came_groups, came_values)
        due_times, due_slots, gone = self._held.due(epoch.upto)
        times = np.concatenate([came.ts, cut.ts, due_times])
        if not len(times) and self._begins is None:
            return Delta(self.nothing, self.nothing)
        held = self._held
        groups = np.concatenate([came_groups, cut_groups, held.group[due_slots]])
        sign: NDArray[np.int8] = np.empty(len(times), np.int8)
        sign[: len(came)] = 1
        sign[len(came) : len(came) + len(cut)] = -1
        sign[len(came) + len(cut) :] = held.sign[due_slots]
        values = _joined([came_values, cut_values, held.values(due_slots) if len(due_slots) else None])
        slots = np.concatenate([came_slots, cut_slots, due_slots]) if self._matched else due_slots[:0]
        if self._begins is not None:
            times = np.append(times, self._begins)
            groups, sign = np.append(groups, np.int32(0)), np.append(sign, np.int8(0))
            values = [pa.concat_arrays([one, pa.nulls(1, one.type)]) for one in values] if values else self._nothing()
            slots = np.append(slots, -1)
            self._begins = None
        self._make_room()
        order = np.argsort(times, kind="stable")  # a few runs that are sorted already: O(n)
        by_cell, cells, cell_groups, cell_times = make_cells(order, groups, times, self._place)
        named = dict(zip(self._programs, values, strict=True))
        events = Events(sign, slots, named, by_cell, cells, cell_groups, cell_times)
        output = self._replaced(events)
        held.free(np.concatenate([due_slots, gone, finished]))
        for one in self._kept:
            one.settle(held)
        self._forget()
        return output

    def _evaluated(self, rows: Rows) -> tuple[Codes, list[pa.Array] | None]:
        """The group and the values of each row."""
        if not len(rows):
            return np.empty(0, np.int32), None
        context = Context.of(rows.batch)
        if self._keys:
            groups = np.array(self._groups.encode([context.value(key) for key in self._keys]), np.int32)
        else:
            groups = np.zeros(len(rows), np.int32)
        return groups, [context.value(program) for program in self._programs]

    def _cut(self, cut: Rows, groups: Codes, values: list[pa.Array] | None) -> tuple[Ints, Ints]:
        """Where the rows are that negative tuples end, and which of these slots are free when the epoch is over."""
        none = np.empty(0, np.int64)
        if values is None:
            return none, none
        if self._matched:
            slots = self._held.cut(groups, values, cut.exp)
            return slots, slots[cut.exp == NEVER]
        known = cut.exp != NEVER
        if known.any():
            # The end that is still to come is taken back then.
            taken = [value.filter(pa.array(known)) for value in values]
            self._held.insert(groups[known], taken, cut.exp[known], sign=1)
        return none, none

    def _insert(self, came: Rows, groups: Codes, values: list[pa.Array] | None) -> Ints:
        """Hold the rows that came, as far as needed."""
        if values is None:
            return np.empty(0, np.int64)
        known = came.exp != NEVER
        if self._matched or known.all():
            slots = self._held.insert(groups, values, came.exp, sign=-1)
        elif known.any():
            some = [value.filter(pa.array(known)) for value in values]
            slots = self._held.insert(groups[known], some, came.exp[known], sign=-1)
        else:
            slots = np.empty(0, np.int64)
        return slots

    def _replaced(self, events: Events) -> Delta:
        """The rows that the answers at all cells make."""
        words: dict[Part, tuple[Any, ...]] = {}
        for one in self._kept:
            words.update(one.step(events))
        answers = [
            _typed(term.aggregate.lower([words[part] for part in _parts(term)]), answer.kind)
            for term, answer in zip(self._terms, self._answers, strict=True)
        ]
        if self._keys:
            alive = words[ROWS][0] > 0
        elif self._first is None:
            alive = np.zeros(events.count, np.bool_)
        else:
            alive = events.times >= self._first
        changed = np.zeros(events.count, np.bool_)
        for answer, array in zip(self._answers, answers, strict=True):
            answer.mark(events.groups, array, self._standing, changed)
        made, ends, cuts = replace_rows(events.groups, events.times, alive, changed, self._standing)
        went = self.nothing
        if len(cuts):
            groups = events.groups[cuts]
            old = [answer.get(groups) for answer in self._answers]
            went = Rows(self._batch(groups, old), events.times[cuts], np.full(len(cuts), NEVER))
        if not len(made):
            return Delta(self.nothing, went)
        groups = events.groups[made]
        if len(made) < events.count:
            places = pa.array(made)
            answers = [array.take(places) for array in answers]
        stays = ends == NEVER
        some = None if stays.all() else pa.array(stays)
        for answer, array in zip(self._answers, answers, strict=True):
            answer.put(groups[stays], array if some is None else array.filter(some))
        return Delta(Rows(self._batch(groups, answers), events.times[made], ends), went)

    def _batch(self, groups: Codes, answers: Sequence[pa.Array]) -> pa.RecordBatch:
        keys = self._groups.keys(groups) if self._keys else []
        arrays = [_typed(array, field.type) for array, field in zip([*keys, *answers], self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # ---- room -------------------------------------------------------------------------------------------------------

    def _nothing(self) -> list[pa.Array]:
        return [pa.nulls(1, program.type) for program in self._programs]

    def _grow(self) -> None:
        """Room for the groups that came."""
        if len(self._groups) > len(self._standing):
            size = max(2 * len(self._standing), len(self._groups), 16)
            self._standing = resized(self._standing, size, False)
            self._place = resized(self._place, size, -1)
            for answer in self._answers:
                answer.grow(size)

    def _make_room(self) -> None:
        for one in self._kept:
            one.grow(len(self._standing), self._held.capacity)

    def _forget(self) -> None:
        """Forget the groups without rows, once there are twice as many as last time."""
        if not self._keys or len(self._groups) <= self._purge_at:
            return
        needed = self._standing[: len(self._groups)].copy()
        needed[self._held.group[np.flatnonzero(self._held.used)]] = True
        live = np.flatnonzero(needed)
        if 2 * len(live) <= len(self._groups):
            numbers = np.zeros(len(self._groups), np.int32)
            numbers[live] = np.arange(len(live))
            self._groups.compact(live)
            self._held.regroup(numbers)
            for one in self._kept:
                one.keep(live)
            for answer in self._answers:
                answer.keep(live)
            self._standing = self._standing[live]
            self._place = self._place[live]
        self._purge_at = 2 * len(self._groups) + FEW

    # ---- for the owner ----------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Groups, totals, held rows, standing answers."""
        total = self._groups.nbytes + self._held.nbytes + self._standing.nbytes + self._place.nbytes
        total += sum(one.nbytes for one in self._kept)
        return total + sum(answer.nbytes for answer in self._answers)

    @property
    def rows(self) -> int:
        """Held rows and standing answers."""
        return len(self._held) + int(self._standing.sum())

    def describe(self) -> str:
        """What is kept for which aggregate."""
        kept = []
        for one in self._kept:
            parts = set(one.parts)
            names = dict.fromkeys(term.aggregate.name for term in self._terms if parts & set(_parts(term)[:1]))
            if names:
                kept.append(f"{one.kind} for {', '.join(names)}")
        return "; ".join(["replaced whenever the answer of a group changes", *kept])

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Groups, totals, held rows, standing answers."""
        many = len(self._groups)
        standing = np.flatnonzero(self._standing[:many])
        arrays = prefixed("groups", self._groups.snapshot()) | {"standing": standing}
        for i, answer in enumerate(self._answers):
            arrays[f"answers.{i}"] = answer.get(standing)
        for i, one in enumerate(self._kept):
            arrays |= prefixed(f"kept.{i}", one.snapshot(many))
        tables = {
            name: pa.table([array if isinstance(array, pa.Array) else pa.array(array)], [name])
            for name, array in arrays.items()
        }
        meta = {"first": self._first, "begins": self._begins, "purge_at": self._purge_at}
        return meta, {**tables, "held": self._held.snapshot()}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        self._first, self._begins, self._purge_at = meta["first"], meta["begins"], meta["purge_at"]
        arrays = {name: _whole(table.column(0)) for name, table in tables.items() if name != "held"}
        self._groups.restore(within("groups", arrays))
        self._grow()
        standing = numpy_of(arrays["standing"])
        self._standing[standing] = True
        for i, answer in enumerate(self._answers):
            answer.put(standing, arrays[f"answers.{i}"])
        slots = self._held.restore(tables["held"])
        values = dict(zip(self._programs, self._held.values(slots), strict=True))
        self._make_room()
        for i, one in enumerate(self._kept):
            one.restore(within(f"kept.{i}", arrays), self._held, slots, values)
        self._make_room()


def _parts(term: Term) -> list[Part]:
    """The components of an aggregate; a count of rows takes no value."""
    return [(component, term.value) for component in term.aggregate.components]


def _kept(parts: Sequence[Part], held: HeldRows, programs: Sequence[Program]) -> list[Kept]:
    """What to keep for the components."""
    totals = [part for part in parts if isinstance(part[0], Subtractable)]
    floats = [part for part in parts if isinstance(part[0], SumFloats)]
    extremes = [part for part in parts if isinstance(part[0], Extreme)]
    moments = [part for part in parts if isinstance(part[0], Moments)]
    of_sets = [part for part in parts if is_of_distinct(part)]
    known = {*totals, *floats, *extremes, *moments, *of_sets}
    others = [part for part in parts if part not in known]
    kept: list[Kept] = [RunningTotals(totals)]
    kept += [RunningFloats(part) for part in floats]
    kept += [RunningMoments(part) for part in moments]
    for program in dict.fromkeys(program for _, program in of_sets if program is not None):
        kept.append(RunningDistinct([part for part in of_sets if part[1] is program], program))
    kept += [RunningExtremes(part) for part in extremes]
    if others:
        kept.append(GroupContents(others, held, {program: k for k, program in enumerate(programs)}))
    return kept


def _joined(parts: Sequence[list[pa.Array] | None]) -> list[pa.Array]:
    there = [part for part in parts if part is not None]
    if len(there) <= 1:
        return there[0] if there else []
    return [pa.concat_arrays(arrays) for arrays in zip(*there, strict=True)]


def _typed(array: Any, kind: pa.DataType) -> pa.Array:
    whole = _whole(array)
    return whole if whole.type == kind else whole.cast(kind)


def _whole(array: Any) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.array([], array.type)])
