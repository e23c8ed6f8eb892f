"""ROWS windows as a leaf: `[PARTITION BY keys ROWS n SLIDE k OFFSET m]`.

Rows count in ROWS order. A row enters when m more of its key have come, and leaves when n more than that have: later
rows decide, so rows are cut (thesis 3.2.1: strict non-monotonic). With SLIDE rows arrive k at a time, at the instant of
the last of them. Cost: O(1) per row. Space: the rows that have not left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.flow.leaves import Leaf
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.rows_window import NONE, arrive, grown, relink, renumber
from windrow.numbering.order import rows_order
from windrow.state.pending import Pending
from windrow.state.rows import NEVER, Delta, Epoch, Rows, empty_batch, one_batch
from windrow.synopses.groups import Groups
from windrow.windows.spec import RowsWindow

SPARE = 4096
"""So many rows that have left are always left where they are."""


class RowsLeaf(Leaf):
    """Holds its rows until they leave; `sequence` orders tuples of one instant."""

    name = "window"

    def __init__(self, window: RowsWindow, schema: pa.Schema, partition: tuple[str, ...], sequence: str | None) -> None:
        self.schema = schema
        self._window = window
        self._partition = partition
        self._sequence = sequence
        self._pending = Pending(schema)
        self._groups = Groups([schema.field(name).type for name in partition])
        self._last_instant: int | None = None
        self._clear()

    def _clear(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._size = self._gone = 0
        self._rest: tuple[pa.RecordBatch, Ints] = (empty_batch(self.schema), np.empty(0, np.int64))
        none: Ints = np.empty(0, np.int64)
        self._arrived: Ints = none
        self._last: Ints = none
        self._entering: Ints = none
        self._leaving: Ints = none
        self._following: Ints = none
        self._begins: Ints = none
        self._ends: Ints = none

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        self._pending.add(batch, ts)

    def finish(self, last: int) -> None:
        self._last_instant = last

    def due(self, upto: int) -> Ints:
        """The instants up to then at which the window slides, one for each time that slides are full."""
        if self._window.slide is None:
            return np.empty(0, np.int64)
        waiting = np.sort(self._pending.instants(upto))
        return np.unique(self._effective(np.concatenate([self._rest[1], waiting]), upto))

    def waiting(self, stamp: str, *, inside: bool) -> Ints:
        """When the tuples came that are not in the window yet (OFFSET, SLIDE), and perhaps those `inside`.

        The column `stamp` has it.
        """
        slots = np.flatnonzero((self._ends if inside else self._begins)[: self._size] == NEVER)
        if not len(slots):
            return self._rest[1]
        stamps: Ints = self._take(slots).column(stamp).to_numpy(zero_copy_only=False)
        return np.concatenate([stamps, self._rest[1]])

    def release(self, epoch: Epoch) -> Delta:
        batch, ts = self._pending.release(epoch.upto, self._order)
        rest, waiting = self._rest
        if len(waiting):
            batch, ts = one_batch([rest, batch], self.schema), np.concatenate([waiting, ts])
        times = self._effective(ts, epoch.upto)
        done = len(times)
        self._rest = batch.slice(done), ts[done:]
        if not done:
            return Delta(self.nothing, self.nothing)
        entered, left = self._arrive(batch.slice(0, done), times)
        fresh = np.zeros(self._size, np.bool_)
        fresh[entered] = True
        begins, ends = self._begins[entered], self._ends[entered]
        shown = begins < ends
        came = Rows(self._take(entered[shown]), begins[shown], ends[shown])
        old = left[~fresh[left]]
        cut = Rows(self._take(old), self._ends[old], np.full(len(old), NEVER))
        self._gone += len(left)
        if self._gone > self._size - self._gone + SPARE:
            self._compact()
        return Delta(came, cut)

    def _order(self, batch: pa.RecordBatch, ts: Ints) -> Ints:
        return rows_order(self._sequence, batch, ts)

    def _effective(self, ts: Ints, upto: int) -> Ints:
        """The instants at which the first of these rows arrive, as far as their slide is full by then."""
        slide = self._window.slide
        if slide is None:
            return ts
        full = len(ts) // slide * slide
        times = np.repeat(ts[slide - 1 : full : slide], slide)
        ended = self._last_instant is not None and self._last_instant <= upto
        if ended and full < len(ts):  # the end of the input: the rest moves the window too
            times = np.append(times, np.full(len(ts) - full, self._last_instant))
        return times

    def _arrive(self, batch: pa.RecordBatch, times: Ints) -> tuple[Ints, Ints]:
        codes = self._codes(batch)
        keys = len(self._groups)
        self._arrived = grown(self._arrived, keys, 0)
        self._last, self._entering, self._leaving = (
            grown(one, keys, NONE) for one in (self._last, self._entering, self._leaving)
        )
        size = self._size + len(times)
        self._following = grown(self._following, size, NONE)
        self._begins, self._ends = (grown(one, size, NEVER) for one in (self._begins, self._ends))
        self._begins[self._size : size] = self._ends[self._size : size] = NEVER
        entered, left = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
        ins, outs = arrive(
            codes, times, self._size, self._window.offset, self._window.count, self._arrived, self._last,
            self._entering, self._leaving, self._following, self._begins, self._ends, entered, left,
        )  # fmt: skip
        self._batches.append(batch)
        self._size = size
        return entered[:ins], left[:outs]

    def _take(self, slots: Ints) -> pa.RecordBatch:
        if len(self._batches) > 1:
            self._batches = [one_batch(self._batches, self.schema)]
        return self._batches[0].take(pa.array(slots))

    def _compact(self) -> None:
        """Forget the rows that have left."""
        kept = np.flatnonzero(self._ends[: self._size] == NEVER)
        mapping = np.full(self._size, NONE, np.int64)
        mapping[kept] = np.arange(len(kept))
        self._batches = [self._take(kept)]
        self._following, self._begins, self._ends = (
            one[kept].copy() for one in (self._following, self._begins, self._ends)
        )
        for pointers in (self._following, self._last, self._entering, self._leaving):
            renumber(pointers, mapping)
        self._size, self._gone = len(kept), 0

    @property
    def nbytes(self) -> int:
        arrays = (self._following, self._begins, self._ends, self._arrived, self._last, self._entering, self._leaving)
        held = sum(int(batch.nbytes) for batch in self._batches) + sum(one.nbytes for one in arrays)
        return held + self._pending.nbytes + self._groups.nbytes

    @property
    def rows(self) -> int:
        return self._size - self._gone + len(self._pending) + len(self._rest[1])

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        if self._size:
            self._compact()
        rest, waiting = self._rest
        held = pa.Table.from_batches(self._batches, self.schema)
        keys = [pa.array(one) for one in self._groups.keys(np.arange(len(self._groups)))] if self._partition else []
        counts = pa.array(self._arrived[: len(self._groups)])
        tables = {
            "pending": self._pending.table(),
            "rest": pa.Table.from_batches([rest], self.schema).append_column("__ts", pa.array(waiting)),
            "held": held.append_column("__begin", pa.array(self._begins[: self._size])),
            "keys": pa.table([*keys, counts], [*(f"key{i}" for i in range(len(keys))), "arrived"]),
        }
        return {}, tables

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self._clear()
        self._pending.restore(tables["pending"])
        rest = tables["rest"]
        self._rest = one_batch(rest.select(self.schema.names).to_batches(), self.schema), _ints(rest, "__ts")
        keys = tables["keys"]
        if self._partition:
            self._groups = Groups(self._groups.key_types)
            if keys.num_rows:
                self._groups.encode([one.combine_chunks() for one in keys.columns[:-1]])
        self._arrived = _ints(keys, "arrived")
        held = tables["held"]
        batch = one_batch(held.select(self.schema.names).to_batches(), self.schema)
        self._batches, self._size = [batch], batch.num_rows
        self._begins, self._ends = _ints(held, "__begin"), np.full(self._size, NEVER)
        self._following = np.full(self._size, NONE)
        self._last, self._entering, self._leaving = (np.full(len(self._arrived), NONE) for _ in range(3))
        relink(
            self._codes(batch), self._begins, NEVER, self._last, self._entering, self._leaving, self._following
        )  # fmt: skip

    def _codes(self, batch: pa.RecordBatch) -> Codes:
        if not self._partition:
            return np.zeros(batch.num_rows, np.int32)
        return np.array(self._groups.encode([batch.column(name) for name in self._partition]))


def _ints(table: pa.Table, name: str) -> Ints:
    return np.array(table.column(name).to_numpy(), np.int64)
