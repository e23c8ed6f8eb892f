"""The leaves of a flow: time-based windows over streams and over the output of subqueries, and relations.

A leaf turns tuples into rows with lifetimes: a tuple of [RANGE T OFFSET d] lives from ts + d to ts + d + T.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.flow.bags import beyond
from windrow.kernels.jit import Ints
from windrow.operators.operator import Operator
from windrow.state.buffer import rows_of
from windrow.state.fifo import Fifo
from windrow.state.pending import Pending
from windrow.state.rows import NEVER, Delta, Epoch, Rows, one_batch
from windrow.synopses.groups import Groups
from windrow.windows.spec import NowWindow, RangeWindow

BEGINNING = -(1 << 62)
"""Before every timestamp: the first epoch begins there."""


class Leaf(Operator):
    """An operator without inputs: tuples are handed to it with `add`."""

    @abstractmethod
    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Tuples with their timestamps; they count when the watermark has passed them."""

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """What begins and ends in the epoch."""
        return self.release(epoch)

    @abstractmethod
    def release(self, epoch: Epoch) -> Delta:
        """What begins and ends in the epoch."""

    def finish(self, last: int) -> None:
        """No more tuples come; `last` is the last instant of the input."""


class RangeLeaf(Leaf):
    """A time-based window.

    A periodic query is looked at every `slide`: lifetimes are rounded up to such instants, and a tuple that is in the
    window at none of them never comes. With `negative` tuples (strategy nt) ends are not told in advance: every row is
    cut when it expires.
    """

    name = "window"

    def __init__(
        self, window: RangeWindow | NowWindow, schema: pa.Schema, *, slide: int | None = None, negative: bool = False
    ) -> None:
        self.schema = schema
        self._slide = slide
        self._offset = window.offset if isinstance(window, RangeWindow) else 0
        self._length = window.length if isinstance(window, RangeWindow) else 1
        self.lifetime = self._length
        """How long a row lives; None: for ever."""
        self._pending = Pending(schema)
        self._held = Fifo(schema, 0) if negative and self._length is not None else None

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        self._pending.add(batch, ts + self._offset)

    def release(self, epoch: Epoch) -> Delta:
        batch, begins = self._pending.release(epoch.upto)
        ends = np.full(len(begins), NEVER) if self._length is None else begins + self._length
        if self._slide is not None:
            begins = rounded_up(begins, self._slide)
            if self._length is not None:
                ends = rounded_up(ends, self._slide)
        rows = Rows(batch, begins, ends)
        if self._slide is not None and self._length is not None:
            rows = rows.filter(begins < ends)
        if self._held is None:
            return Delta(rows, self.nothing)
        open_ = rows.exp > epoch.upto
        self._held.insert(rows.filter(open_))
        gone = self._held.rows(self._held.expire(epoch.upto))
        self._held.settle()
        cut = Rows(gone.batch, gone.exp, np.full(len(gone), NEVER))
        return Delta(Rows(rows.batch, rows.ts, np.where(open_, NEVER, rows.exp)), cut)

    @property
    def nbytes(self) -> int:
        return self._pending.nbytes + (0 if self._held is None else self._held.nbytes)

    @property
    def rows(self) -> int:
        return len(self._pending) + (0 if self._held is None else len(self._held))

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        tables = {"pending": self._pending.table()}
        if self._held is not None:
            tables["held"] = self._held.snapshot()
        return {}, tables

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self._pending.restore(tables["pending"])
        if self._held is not None:
            self._held.insert(rows_of(tables["held"], self.schema))


class RelationLeaf(Leaf):
    """The rows of a relation, and their changes at the instants at which they take effect.

    The owner ends an epoch before every such instant and at it. So a row that comes and goes within one epoch does so
    at one instant, and was never there.
    """

    name = "relation"

    def __init__(self, schema: pa.Schema, *, slide: int | None = None) -> None:
        self.schema = schema
        self._slide = slide
        self._came = Pending(schema)
        self._gone = Pending(schema)
        self._first = Pending(schema)

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        self._came.add(batch, self._seen(ts))

    def start(self, batch: pa.RecordBatch, *, comes: bool = True) -> None:
        """Rows that are there from the beginning, whenever that will be, or no longer."""
        if not comes:
            rows, _ = self._first.release(BEGINNING)
            batch = self._unmatched(rows, np.full(rows.num_rows, BEGINNING), batch, np.full(batch.num_rows, 0))[0]
        self._first.add(batch, np.full(batch.num_rows, BEGINNING))

    def begin(self, instant: int) -> None:
        """The first instant of the query."""
        batch, _ = self._first.release(instant)
        self._came.add(batch, np.full(batch.num_rows, instant))

    def remove(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Whole rows that go."""
        self._gone.add(batch, self._seen(ts))

    def _seen(self, ts: Ints) -> Ints:
        return ts if self._slide is None else rounded_up(ts, self._slide)

    def instants(self, upto: int) -> Ints:
        """When something takes effect, up to then."""
        every: Ints = np.unique(np.concatenate([self._came.instants(upto), self._gone.instants(upto)]))
        return every

    def release(self, epoch: Epoch) -> Delta:
        batch, ts = self._came.release(epoch.upto)
        gone, when = self._gone.release(epoch.upto)
        if len(ts) and len(when):
            batch, ts, gone, when = self._unmatched(batch, ts, gone, when)
        came = Rows(batch, np.maximum(ts, epoch.since + 1), np.full(len(ts), NEVER))
        return Delta(came, Rows(gone, when, np.full(len(when), NEVER)))

    def _unmatched(
        self, batch: pa.RecordBatch, ts: Ints, gone: pa.RecordBatch, when: Ints
    ) -> tuple[pa.RecordBatch, Ints, pa.RecordBatch, Ints]:
        """Without the rows that come and go at once, or go and come again."""
        groups = Groups([one.type for one in self.schema])
        codes = np.array(groups.encode(one_batch([batch, gone], self.schema).columns))
        ours, theirs = codes[: len(ts)], codes[len(ts) :]
        kept, left = beyond(ours, theirs), beyond(theirs, ours)
        return batch.filter(pa.array(kept)), ts[kept], gone.filter(pa.array(left)), when[left]

    @property
    def nbytes(self) -> int:
        return self._came.nbytes + self._gone.nbytes + self._first.nbytes

    @property
    def rows(self) -> int:
        return len(self._came) + len(self._gone) + len(self._first)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        return {}, {"came": self._came.table(), "gone": self._gone.table(), "first": self._first.table()}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self._came.restore(tables["came"])
        self._gone.restore(tables["gone"])
        self._first.restore(tables["first"])


def rounded_up(ticks: Ints, slide: int) -> Ints:
    """The first multiples of `slide` at or after these instants; the end that nobody knows stays so."""
    result: Ints = np.where(ticks == NEVER, NEVER, -(-ticks // slide) * slide)
    return result
