"""The numbers of one stream's tuples, and all state on the axis of numbers: what its ROWS queries share.

tuples ─► waiting for the watermark ─► numbered in ROWS order ─► panes of slices, the last rows, the last rows per key

On this axis a ROWS window is a RANGE window, so slices, panes and synopses are those of time windows. Numbers begin
with 1 at the first tuple after the first ROWS query came; a query that comes later counts from where it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.input import timestamps
from windrow.kernels.jit import Ints
from windrow.language import types
from windrow.language.catalog import Stream
from windrow.numbering.last_rows import LastRows
from windrow.numbering.order import rows_order
from windrow.numbering.row_log import RowLog
from windrow.plan.periodic import PeriodicAggregate
from windrow.sharing.slice import Slice
from windrow.state.pending import Pending
from windrow.synopses.snapshot import pack, unpack
from windrow.windows.spec import BEGINNING

ShareKey: TypeAlias = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Released:
    """Tuples that have just got their numbers first+1, first+2, …"""

    table: pa.Table
    ts: Ints
    first: int

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def numbers(self) -> Ints:
        """The number of each tuple."""
        return np.arange(self.first + 1, self.first + 1 + len(self.ts), dtype=np.int64)


class Numbering:
    """The tuples of one stream, numbered. Tuples at or before `begin` came, in part, before it: none has a number."""

    def __init__(self, stream: Stream, begin: int = BEGINNING) -> None:
        self.stream = stream
        self.begin = begin
        self.waiting = Pending(stream.schema)
        self.log = RowLog()
        self.slices: dict[ShareKey, Slice] = {}
        self.partitions: dict[tuple[str, ...], LastRows] = {}
        """By the columns of PARTITION BY."""
        self.newest_ts: int | None = None
        """Of the last tuple that has a number."""

    @property
    def count(self) -> int:
        """How many tuples have a number."""
        return self.log.last

    @property
    def nbytes(self) -> int:
        """Bytes of all state on this axis."""
        panes = sum(part.group.nbytes for part in self.slices.values() if part.group is not None)
        return panes + self.waiting.nbytes + self.log.nbytes + sum(one.nbytes for one in self.partitions.values())

    def partition(self, plan: PeriodicAggregate) -> LastRows:
        """The last rows by the plan's PARTITION BY."""
        assert plan.rows is not None
        names = plan.rows.partition_by
        if names not in self.partitions:
            key_types = [types.to_arrow(self.stream.column(name).type) for name in names]
            self.partitions[names] = LastRows(key_types, self.count)
        return self.partitions[names]

    def leave(self, plan: PeriodicAggregate, part: Slice, others: list[PeriodicAggregate]) -> None:
        """A query goes, which `part` still has as a member; `others` stay."""
        assert plan.rows is not None
        keys = plan.rows.partition_by
        if keys:
            if not _users(others, keys):
                del self.partitions[keys]
            return
        assert part.group is not None
        part.group.cut(self.count)  # coarser edges may follow, and a pane has the edges of one grid
        if len(part.members) == 1:
            self.slices = {key: one for key, one in self.slices.items() if one is not part}

    # ---- tuples ---------------------------------------------------------------------------------------------------

    def add(self, table: pa.Table) -> None:
        """Tuples arrive; none is late."""
        if self.begin != BEGINNING:
            ticks = table.column(self.stream.time).cast(pa.int64())
            table = table.filter(pc.greater(ticks, self.begin))
        self._wait(table)

    def _wait(self, table: pa.Table) -> None:
        for batch in table.cast(self.stream.schema).combine_chunks().to_batches():
            self.waiting.add(batch, timestamps(self.stream, pa.Table.from_batches([batch])))

    def _order(self, batch: pa.RecordBatch, ts: Ints) -> Ints:
        return rows_order(self.stream.sequence, batch, ts)

    def release(self, watermark: int | None, plans: list[PeriodicAggregate]) -> Released:
        """Number the tuples up to the watermark (None: all), and keep of them what the plans may look at again."""
        batch, ts = self.waiting.release(watermark, self._order)
        table = pa.Table.from_batches([batch])
        released = Released(table, ts, self.count)
        if len(ts):
            self.newest_ts = int(ts[-1])
            self.log.append(_narrowed(table, _users(plans, ())))
            for keys, one in self.partitions.items():
                one.append(_narrowed(table, _users(plans, keys)), keys, released.numbers)
        return released

    def settle(self, plans: list[PeriodicAggregate]) -> None:
        """All due windows are answered: forget what none can look at again."""
        self.log.keep(_reach(plans, ()))
        for keys, one in self.partitions.items():
            one.settle(_reach(plans, keys))

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self, blobs: dict[str, bytes]) -> dict[str, Any]:
        """All but the slices: a JSON-able dict; tuples and chains are added to the blobs."""

        def blob(data: bytes) -> str:
            name = f"rows-{len(blobs):06}"
            blobs[name] = data
            return name

        partitions = []
        for keys, one in self.partitions.items():
            meta, arrays, rows = one.snapshot()
            stored = None if rows is None else blob(_ipc(rows))
            partitions.append({"keys": list(keys), "chains": blob(pack(meta, arrays)), "rows": stored})
        return {
            "begin": self.begin,
            "count": self.count,
            "newest_ts": self.newest_ts,
            "waiting": blob(_ipc(self.waiting.table().select(self.stream.schema.names))),
            "log": [blob(_ipc(table)) for table in _alike(self.log.tables())],
            "partitions": partitions,
        }

    def restore(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Become what `snapshot` wrote, in a fresh numbering of the same stream and PARTITION BYs."""
        self.begin, self.newest_ts = meta["begin"], meta["newest_ts"]
        self._wait(_table(blobs[meta["waiting"]]))
        tables = [_table(blobs[name]) for name in meta["log"]]
        self.log = RowLog(meta["count"] - sum(table.num_rows for table in tables))
        for table in tables:
            self.log.append(table)
        for one in meta["partitions"]:
            about, arrays = unpack(blobs[one["chains"]])
            rows = None if one["rows"] is None else _table(blobs[one["rows"]])
            self.partitions[tuple(one["keys"])].restore(about, arrays, rows)


def _users(plans: list[PeriodicAggregate], keys: tuple[str, ...]) -> list[PeriodicAggregate]:
    return [plan for plan in plans if plan.rows is not None and plan.rows.partition_by == keys]


def _narrowed(table: pa.Table, plans: list[PeriodicAggregate]) -> pa.Table:
    """The columns that the plans read; the time column is always there, and so is the number of rows."""
    read = frozenset().union(*(plan.columns_read for plan in plans))
    names = [name for name in table.schema.names if name in read]
    return table.select(names or table.schema.names[:1])


def _reach(plans: list[PeriodicAggregate], keys: tuple[str, ...]) -> int:
    """How many of the last rows (of each key) their windows can hold."""
    return max((plan.window.reach or 0 for plan in _users(plans, keys)), default=0)


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Neighbours with the same columns put together."""
    runs: list[list[pa.Table]] = []
    for table in tables:
        if runs and runs[-1][0].schema == table.schema:
            runs[-1].append(table)
        else:
            runs.append([table])
    return [pa.concat_tables(run) for run in runs]


def _ipc(table: pa.Table) -> bytes:
    """The rows alone: what is a slice of more rows would be written with all of them."""
    rows = table.take(pa.array(np.arange(table.num_rows))).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
