"""⋈: the multi-way window join (thesis chapter 5): n inputs, any equi-join graph, residual predicates.

Each input holds its rows in a buffer with one hash index per set of keys by which it is probed; intermediate results
are never kept. The rows that an input gets in an epoch are put into its buffer and meet what the others hold, input
after input, so that every combination is found once. A combination lives while all its rows do: [max ts, min exp). It
is a slot per input until all are found; only then are columns read, and only those of the output.

A row that is cut (a negative tuple) ends its combinations: they are found in the same way, and cut too.

The order in which rows meet the other inputs is chosen again while the join runs (`join_watch.py`, thesis 5.3).

Cost per epoch: changes × probes + combinations. Space: the rows of the windows, in the columns that are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.expressions import Context, Program
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.kernels.meeting import meet
from windrow.operators.join_plan import Equality, Keys, Residual, Step, planned
from windrow.operators.join_watch import Watch
from windrow.operators.operator import Operator
from windrow.operators.pieces import in_pieces
from windrow.operators.select import holds
from windrow.state.buffer import Buffer, rows_of
from windrow.state.codes import forget_codes
from windrow.state.rows import Delta, Epoch, Rows
from windrow.synopses.groups import Groups

__all__ = ["AT_ONCE", "MOST_RESULTS", "Equality", "Join", "Residual"]

MOST_RESULTS = 50_000_000
"""Combinations that one epoch may make: a join without a selective predicate must not exhaust the memory."""
AT_ONCE = 1 << 21
"""Combinations that are looked at together."""
NO_SLOTS: Ints = np.empty(0, np.int64)


@dataclass(eq=False)
class _Side:
    """What one input holds."""

    buffer: Buffer
    indexes: dict[tuple[int, ...], int]
    """From a set of keys to the number of the index."""
    row_index: int | None
    """The index by whole rows, by which cut rows are found."""
    row_codes: Groups | None = None


@dataclass(eq=False)
class _Found:
    """Combinations in the making: for each bound input the slots of its rows, and the common lifetime.

    `was` is the lifetime's end without the cuts of this epoch, where that matters.
    """

    slots: dict[int, Ints]
    ts: Ints
    exp: Ints
    was: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def keep(self, kept: Any) -> None:
        """Only those where `kept` is True, or at these places."""
        self.slots = {number: slots[kept] for number, slots in self.slots.items()}
        self.ts, self.exp = self.ts[kept], self.exp[kept]
        self.was = None if self.was is None else self.was[kept]


class Join(Operator):
    """`orders[i]`: in which order the rows of input i meet the others; `null_safe` makes NULL equal NULL.

    Without `orders` they are chosen, and, unless `adaptive` is False, chosen again now and then.
    """

    name = "join"

    def __init__(
        self,
        schemas: Sequence[pa.Schema],
        buffers: Sequence[Any],
        equalities: Sequence[Equality],
        residuals: Sequence[Residual],
        orders: Sequence[Sequence[int]] | None = None,
        *,
        outputs: Sequence[tuple[int, str]] | None = None,
        schema: pa.Schema | None = None,
        null_safe: bool = False,
        strict: Sequence[bool] = (),
        adaptive: bool = True,
    ) -> None:
        self._inputs = tuple(schemas)
        self._residuals = tuple(residuals)
        self._null_safe = null_safe
        count = len(self._inputs)
        self._keys = Keys(count, equalities)
        self._strict = tuple(strict) or (True,) * count
        self.outputs = tuple(outputs) if outputs is not None else tuple(
            (number, name) for number, one in enumerate(schemas) for name in one.names
        )  # fmt: skip
        self.schema = schema or pa.schema([self._inputs[number].field(name) for number, name in self.outputs])
        self._make = tuple(buffers)
        self._adaptive = adaptive and orders is None
        self._watch = Watch([_label(number, one) for number, one in enumerate(schemas)], self._keys)
        self._sides: list[_Side] = []
        self._choose_columns()
        self.order(orders or self._watch.first())

    def show(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """Before the first epoch: only these columns of the output are wanted, under these names."""
        places = dict(zip(self.schema.names, self.outputs, strict=True))
        self.outputs = tuple(places[column] for column in columns)
        self.schema = pa.schema([
            self._inputs[number].field(column).with_name(name)
            for (number, column), name in zip(self.outputs, names, strict=True)
        ])  # fmt: skip
        self._choose_columns()
        self.order(self.orders)

    def _choose_columns(self) -> None:
        """Which columns of each input are held: those of keys, residual predicates and the output."""
        wanted = [{name for place, name in self.outputs if place == number} for number in range(len(self._inputs))]
        for own, keys in zip(wanted, self._keys.of, strict=True):
            for program in (*(one for some in keys.values() for one in some), *(r.program for r in self._residuals)):
                own.update(program.columns())
        self._places: list[list[int]] = []
        for own, schema in zip(wanted, self._inputs, strict=True):
            places = [place for place, name in enumerate(schema.names) if name in own]
            self._places.append(places or [0])  # a row must have a column
        self._schemas = [
            pa.schema([schema.field(place) for place in places])
            for schema, places in zip(self._inputs, self._places, strict=True)
        ]

    def _chosen(self, number: int, rows: Rows) -> Rows:
        if not len(rows) or len(self._places[number]) == rows.batch.num_columns:
            return rows
        return rows.with_batch(rows.batch.select(self._places[number]))

    # ---- orders and indexes ---------------------------------------------------------------------------------------

    def order(self, orders: Sequence[Sequence[int]]) -> None:
        """Between epochs: orders[i] are the other inputs in the order in which the rows of input i meet them."""
        self.orders = [list(one) for one in orders]
        self._steps = [planned(self._keys, self._residuals, number, one) for number, one in enumerate(orders)]
        used: list[dict[tuple[int, ...], int]] = [{} for _ in self._schemas]
        for steps in self._steps:
            for step in steps:
                own = used[step.target]
                own.setdefault(step.keys, len(own))
        held = [side.buffer.rows(side.buffer.scan()) for side in self._sides]
        self._groups: dict[tuple[int, ...], Groups] = {}
        self._sides = []
        for number, own in enumerate(used):
            strict = self._strict[number]
            buffer = self._make[number](self._schemas[number], len(own) + int(strict))
            codes = Groups([one.type for one in self._schemas[number]]) if strict else None
            self._sides.append(_Side(buffer, own, len(own) if strict else None, codes))
        for number, rows in enumerate(held):
            self._hold(number, rows)

    def _hold(self, number: int, rows: Rows) -> None:
        """Rows of earlier epochs."""
        if len(rows):
            self._insert(number, rows, Context.of(rows.batch))
            self._sides[number].buffer.settle()

    # ---- one epoch ------------------------------------------------------------------------------------------------

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Cut what is cut, then let every input's new rows meet what the others hold."""
        made = 0
        cut: list[_Found] = []
        affected = [self._cut(number, delta.cut) for number, delta in enumerate(inputs)]
        for number, slots in enumerate(affected):
            if len(slots):
                found = self._join(number, slots, made, old=True)
                cut += found
                made += sum(len(one) for one in found)
        came: list[_Found] = []
        for number, delta in enumerate(inputs):
            if not len(delta.came):
                continue
            rows, context = self._matchable(number, self._chosen(number, delta.came))
            if len(rows):
                slots = self._insert(number, rows, context)
                found = self._join(number, slots, made, old=False)
                came += found
                made += sum(len(one) for one in found)
        result = Delta(self._rows(came), self._rows(cut))
        buffers = [side.buffer for side in self._sides]
        for buffer in buffers:
            buffer.expire(epoch.upto)
            buffer.settle()
        self._forget()
        self._watch.see(inputs, epoch)
        if self._adaptive and self._watch.due(buffers):
            better = self._watch.look(buffers, self.orders, epoch)
            if better is not None:
                self.order(better)
        return result

    def _cut(self, number: int, rows: Rows) -> Ints:
        if len(rows):
            rows, _ = self._matchable(number, self._chosen(number, rows))
        if not len(rows):
            return NO_SLOTS
        side = self._sides[number]
        assert side.row_index is not None and side.row_codes is not None
        codes = np.array(side.row_codes.encode(rows.batch.columns))
        return side.buffer.cut(rows, side.row_index, codes)

    def _join(self, start: int, slots: Ints, made: int, *, old: bool) -> list[_Found]:
        """All combinations with these rows of input `start`, in pieces; of `old` rows those that are cut now."""
        return in_pieces(
            len(slots),
            lambda chunk: self._combined(start, slots[chunk], old=old),
            "the join",
            made=made,
            most=MOST_RESULTS,
        )

    def _combined(self, start: int, slots: Ints, *, old: bool) -> _Found:
        buffer = self._sides[start].buffer
        found = _Found({start: slots}, buffer.ts[slots], buffer.exp[slots], buffer.was[slots] if old else None)
        for step in self._steps[start]:
            if not len(found):
                break
            self._probe(found, start, step)
        if old:
            assert found.was is not None
            found.keep(found.exp < found.was)
            # A negative tuple: the row that was to end at `was` ends at `exp`.
            return _Found(found.slots, found.exp, found.was)
        return found

    def _probe(self, found: _Found, start: int, step: Step) -> None:
        side = self._sides[step.target]
        buffer = side.buffer
        which, slots = buffer.probe(side.indexes[step.keys], self._codes(found, step), AT_ONCE)
        if found.was is None:
            begin, end = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
            ts, exp, held_ts, held_exp = (frozen(one) for one in (found.ts, found.exp, buffer.ts, buffer.exp))
            count = meet(which, slots, ts, exp, held_ts, held_exp, begin, end)
            which = which[:count]
            found.slots = {number: places[which] for number, places in found.slots.items()}
            found.slots[step.target] = slots[:count]
            found.ts, found.exp = begin[:count], end[:count]
        else:
            found.keep(which)
            assert found.was is not None
            found.slots[step.target] = slots
            found.ts = np.maximum(found.ts, buffer.ts[slots])
            found.exp = np.minimum(found.exp, buffer.exp[slots])
            found.was = np.minimum(found.was, buffer.was[slots])
            kept = found.ts < found.was
            if step.target < start:  # a combination of several cut rows is found from the first of them
                kept &= buffer.exp[slots] == buffer.was[slots]
            found.keep(kept)
        for place in step.residuals:
            if len(found):
                program = self._residuals[place].program
                found.keep(holds(program, self._read(found.slots, program)))

    # ---- keys and columns -----------------------------------------------------------------------------------------

    def _codes(self, found: _Found, step: Step) -> Codes:
        """The codes by which `target` is probed: those of an index, where the rows that are bound have them already."""
        if not step.keys:
            return np.zeros(len(found), np.int32)
        home = step.sources[0]
        index = self._sides[home].indexes.get(step.keys)
        if index is not None and all(source == home for source in step.sources):
            return self._sides[home].buffer.coded(index, found.slots[home])
        arrays = []
        for key, source in zip(step.keys, step.sources, strict=True):
            program = self._keys.program(source, key)
            batch = self._read({source: found.slots[source]}, program)
            arrays.append(Context.of(batch).array(program))
        return self._encoded(step.keys, arrays)

    def _encoded(self, keys: tuple[int, ...], arrays: Sequence[pa.Array]) -> Codes:
        if keys not in self._groups:
            self._groups[keys] = Groups([self._keys.types[key] for key in keys])
        return np.array(self._groups[keys].encode(arrays))

    def _read(self, slots: Mapping[int, Ints], program: Program) -> pa.RecordBatch:
        """The columns that a program reads."""
        wanted = program.columns()
        arrays: list[pa.Array] = []
        names: list[str] = []
        for number, places in slots.items():
            own = [name for name in self._schemas[number].names if name in wanted]
            if own:
                arrays += self._sides[number].buffer.batch(places, own).columns
                names += own
        if not names:  # a constant still needs to know how many rows there are
            number, places = next(iter(slots.items()))
            return self._sides[number].buffer.batch(places, self._schemas[number].names[:1])
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _rows(self, pieces: Sequence[_Found]) -> Rows:
        """The output columns of combinations; each input is read once."""
        if not pieces:
            return self.nothing
        taken: dict[int, dict[str, pa.Array]] = {}
        for number in dict.fromkeys(number for number, _ in self.outputs):
            names = list(dict.fromkeys(name for place, name in self.outputs if place == number))
            batch = self._sides[number].buffer.batch(_joined([one.slots[number] for one in pieces]), names)
            taken[number] = dict(zip(names, batch.columns, strict=True))
        arrays = [taken[number][name] for number, name in self.outputs]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return Rows(batch, _joined([one.ts for one in pieces]), _joined([one.exp for one in pieces]))

    def _matchable(self, number: int, rows: Rows) -> tuple[Rows, Context]:
        """Without the rows that match nothing: a key is NULL, or two columns that must be equal are not."""
        context = Context.of(rows.batch)
        kept: Any = None
        for programs in self._keys.of[number].values() if not self._null_safe else ():
            for program in programs:
                value = context.array(program)
                if value.null_count:
                    valid = value.is_valid().to_numpy(zero_copy_only=False)
                    kept = valid if kept is None else kept & valid
        for first, *others in self._keys.same(number):
            groups = Groups([first.type])
            codes = np.array(groups.encode([context.array(first)]))
            for program in others:
                equal = codes == groups.encode([context.array(program)])
                kept = equal if kept is None else kept & equal
        if kept is None or kept.all():
            return rows, context
        rows = rows.filter(kept)
        return rows, Context.of(rows.batch)

    def _insert(self, number: int, rows: Rows, context: Context) -> Ints:
        side = self._sides[number]
        codes: list[Codes] = []
        for keys in side.indexes:
            if keys:
                arrays = [context.array(self._keys.program(number, key)) for key in keys]
                codes.append(self._encoded(keys, arrays))
            else:
                codes.append(np.zeros(len(rows), np.int32))
        if side.row_codes is not None:
            codes.append(np.array(side.row_codes.encode(rows.batch.columns)))
        return side.buffer.insert(rows, codes)

    def _forget(self) -> None:
        """Codes that nobody uses any more are given up when they are most of a dictionary."""
        for keys, groups in self._groups.items():
            users = [(side.buffer, side.indexes[keys]) for side in self._sides if keys in side.indexes]
            forget_codes(groups, users)
        for side in self._sides:
            if side.row_codes is not None and side.row_index is not None:
                forget_codes(side.row_codes, [(side.buffer, side.row_index)])

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        codes = sum(groups.nbytes for groups in self._groups.values())
        codes += sum(side.row_codes.nbytes for side in self._sides if side.row_codes is not None)
        return codes + sum(side.buffer.nbytes for side in self._sides)

    @property
    def rows(self) -> int:
        return sum(len(side.buffer) for side in self._sides)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        tables = {str(number): side.buffer.snapshot() for number, side in enumerate(self._sides)}
        return {"orders": self.orders}, tables

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self._sides = []
        self.order(meta["orders"])
        for number in range(len(self._sides)):
            self._hold(number, rows_of(tables[str(number)], self._schemas[number]))

    def describe(self) -> str:
        told = self._watch.describe(self.orders)
        return "; ".join([*([told] if told else []), *(side.buffer.describe() for side in self._sides)])


def _label(number: int, schema: pa.Schema) -> str:
    """What EXPLAIN calls an input: the FROM item of its columns."""
    alias, point, _ = schema.names[0].rpartition(".")
    return alias if point and alias else f"input {number + 1}"


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
