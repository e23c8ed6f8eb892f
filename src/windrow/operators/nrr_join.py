"""⋈NRR: a join with a non-retroactive relation (thesis, Definition 3.1): tuples meet the rows that are there when they
arrive; later updates touch only tuples that arrive later.

A row of the relation that came at `start` and went at `end` meets the tuples with start < ts <= end. Results live as
long as their tuple does, so the pattern of the input is kept. Cost: O(tuples + results) per epoch. Space: the
relation, with the rows that went while tuples from before may still come, and, only where the input has negative
tuples, the input's rows: their results must be found again to be cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.expressions import Context, Program
from windrow.kernels.jit import Codes, Ints
from windrow.operators.join import AT_ONCE, MOST_RESULTS, Equality
from windrow.operators.operator import Operator
from windrow.operators.pieces import in_pieces
from windrow.operators.select import holds
from windrow.state.buffer import Buffer, rows_of
from windrow.state.codes import few_unused, forget_codes
from windrow.state.fifo import Fifo
from windrow.state.rows import NEVER, Delta, Epoch, Rows, empty_batch, one_batch
from windrow.synopses.groups import Groups

BEGINNING = -(1 << 62)


class NrrJoin(Operator):
    """Input 0 is the stream side; the relation's rows are handed in with `add` and `remove`.

    `arrived` are its columns with the timestamps of tuples, without which the begin of a row counts. Tuples may wait
    until they count: `waits` is how long (None: without end), `waiting` gives the timestamps of those that wait for
    other tuples.
    """

    name = "nrr join"

    def __init__(
        self,
        left: pa.Schema,
        relation: pa.Schema,
        equalities: Sequence[Equality],
        residuals: Sequence[Program],
        buffer: Callable[[pa.Schema, int], Buffer] | None,
        *,
        arrived: Sequence[str] = (),
        waits: int | None = 0,
        waiting: Callable[[], Ints] = lambda: np.empty(0, np.int64),
    ) -> None:
        self._arrived, self._waits, self._waiting = tuple(arrived), waits, waiting
        self._saved = self._price = 0
        self._left, self._relation = left, relation
        self.schema = pa.schema([*left, *relation])
        self._equalities, self._residuals = tuple(equalities), tuple(residuals)
        self._rows = empty_batch(relation)
        self._start: Ints = np.empty(0, np.int64)
        self._end: Ints = np.empty(0, np.int64)
        self._index: Fifo | None = None
        self._held = None if buffer is None else buffer(left, 1)
        self._codes = Groups([one.type for one in left])
        self._keys = Groups([one.programs[0].type for one in self._equalities])

    # ---- the relation ---------------------------------------------------------------------------------------------

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Rows that are there for tuples that arrive after `ts`."""
        named = pa.RecordBatch.from_arrays(batch.columns, schema=self._relation)
        self._rows = one_batch([self._rows, named], self._relation)
        self._start = np.append(self._start, ts)
        self._end = np.append(self._end, np.full(len(ts), NEVER))
        self._index = None

    def remove(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Whole rows that are not there any more for tuples that arrive after `ts`."""
        named = pa.RecordBatch.from_arrays(batch.columns, schema=self._relation)
        groups = Groups([one.type for one in self._relation])
        codes = np.array(groups.encode(one_batch([self._rows, named], self._relation).columns))
        count = len(self._start)
        for place, when in zip(codes[count:].tolist(), ts.tolist(), strict=True):
            found = np.flatnonzero((codes[:count] == place) & (self._end == NEVER))
            self._end[found[:1]] = when

    def instants(self, upto: int) -> Ints:
        """Its updates end no epoch: timestamps decide what they touch."""
        return np.empty(0, np.int64)

    def _indexed(self) -> Fifo:
        if self._index is None:
            self._index = Fifo(self._relation, 1)
            lives = np.full(len(self._start), NEVER)
            self._index.insert(Rows(self._rows, np.zeros(len(lives), np.int64), lives), [self._key(1, self._rows)])
        return self._index

    def _key(self, number: int, batch: pa.RecordBatch) -> Codes:
        if not self._equalities:
            return np.zeros(batch.num_rows, np.int32)
        context = Context.of(batch)
        return np.array(self._keys.encode([context.array(one.side(number)) for one in self._equalities]))

    # ---- the stream side ------------------------------------------------------------------------------------------

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Meet the relation as it was when each tuple arrived."""
        (delta,) = inputs
        came = self._joined(delta.came, self._arrival(delta.came.batch, delta.came.ts))
        cut = self.nothing
        if self._held is not None:
            if len(delta.cut):
                slots = self._held.cut(delta.cut, 0, np.array(self._codes.encode(delta.cut.batch.columns)))
                cut = self._joined(delta.cut, self._arrival(delta.cut.batch, self._held.ts[slots]))
            if len(delta.came):
                self._held.insert(delta.came, [np.array(self._codes.encode(delta.came.batch.columns))])
            self._held.expire(epoch.upto)
            self._held.settle()
        self._saved += len(delta.came) + len(delta.cut) + 1
        if self._saved >= self._price:  # a look at everything that is kept is paid by as many changes
            self._forget(epoch)
        self._forget_codes()
        return Delta(came, cut)

    def _arrival(self, batch: pa.RecordBatch, begins: Ints) -> Ints:
        """When the last tuple of each row arrived, which may be before the row begins (OFFSET, SLIDE)."""
        found = begins
        for place, name in enumerate(self._arrived):
            stamps = batch.column(name).to_numpy(zero_copy_only=False)
            found = stamps if place == 0 else np.maximum(found, stamps)
        return found

    def _joined(self, rows: Rows, arrived: Ints) -> Rows:
        """All pairs, found in pieces that are small enough."""
        if not len(rows) or not len(self._start):
            return self.nothing

        def part(chunk: slice) -> Rows:
            batch = rows.batch.slice(chunk.start, chunk.stop - chunk.start)
            return self._pairs(Rows(batch, rows.ts[chunk], rows.exp[chunk]), arrived[chunk])

        pieces = in_pieces(len(rows), part, "the join with a relation", made=0, most=MOST_RESULTS)
        return Rows.concat(pieces, self.schema)

    def _pairs(self, rows: Rows, arrived: Ints) -> Rows:
        valid = self._not_null(0, rows.batch)
        places = np.flatnonzero(valid)
        index = self._indexed()
        which, slots = index.probe(0, self._key(0, rows.batch)[places], AT_ONCE)
        which = places[which]
        there = (self._start[slots] < arrived[which]) & (arrived[which] <= self._end[slots])
        there &= self._not_null(1, self._rows)[slots]
        which, slots = which[there], slots[there]
        left, right = rows.batch.take(pa.array(which)), self._rows.take(pa.array(slots))
        batch = pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=self.schema)
        joined = Rows(batch, rows.ts[which], rows.exp[which])
        for residual in self._residuals:
            if len(joined):
                joined = joined.filter(holds(residual, joined.batch))
        return joined

    def _not_null(self, number: int, batch: pa.RecordBatch) -> Any:
        kept = np.ones(batch.num_rows, np.bool_)
        context = Context.of(batch)
        for one in self._equalities:
            kept &= context.array(one.side(number)).is_valid().to_numpy(zero_copy_only=False)
        return kept

    def _forget(self, epoch: Epoch) -> None:
        """Rows that no tuple can ask for any more: neither one that comes, nor one that waits or is held."""
        self._saved, self._price = 0, self.rows
        if self._waits is None:
            return
        oldest = epoch.upto - self._waits
        if not (self._end < oldest).any():
            return
        asking = self._waiting()
        if len(self._arrived) > 1 and len(asking):  # the last of its tuples counts, which may be any later one
            oldest = min(oldest, int(asking.min()))
        if self._held is not None and len(self._held):
            slots = self._held.scan()
            asking = np.append(asking, self._arrival(self._held.batch(slots), self._held.ts[slots]))
        asking = np.sort(asking)
        met = np.searchsorted(asking, self._end, "right") > np.searchsorted(asking, self._start, "right")
        needed = met | (self._end >= oldest)
        if not needed.all():
            self._rows = self._rows.filter(pa.array(needed))
            self._start, self._end = self._start[needed], self._end[needed]
            self._index = None

    def _forget_codes(self) -> None:
        """Keys and rows that streams brought once."""
        if not few_unused(self._keys, len(self._start)):
            self._keys, self._index = Groups(self._keys.key_types), None
        if self._held is not None:
            forget_codes(self._codes, [(self._held, 0)])

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        held = 0 if self._held is None else self._held.nbytes
        codes = self._codes.nbytes + self._keys.nbytes + (0 if self._index is None else self._index.nbytes)
        return held + codes + int(self._rows.nbytes) + self._start.nbytes + self._end.nbytes

    @property
    def rows(self) -> int:
        return len(self._start) + (0 if self._held is None else len(self._held))

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        table = pa.Table.from_batches([self._rows]).append_column("__ts", pa.array(self._start))
        tables = {"relation": table.append_column("__exp", pa.array(self._end))}
        if self._held is not None:
            tables["held"] = self._held.snapshot()
        return {}, tables

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        rows = rows_of(tables["relation"], self._relation)
        self._rows, self._start, self._end, self._index = rows.batch, rows.ts, rows.exp, None
        if self._held is not None:
            held = rows_of(tables["held"], self._left)
            self._held.restore(tables["held"], [np.array(self._codes.encode(held.batch.columns))])

    def describe(self) -> str:
        kept = "no row of the stream is kept" if self._held is None else f"{self._held.describe()}, for negative tuples"
        return f"⋈NRR: {kept}"
