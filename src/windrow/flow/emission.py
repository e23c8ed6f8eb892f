"""What comes out of a query: changes, insertions, deletions, or complete answers (thesis 3.3.3, 3.3.4; CQL).

changes      continuous: what goes (-) and what comes (+) at each instant
insertions   ISTREAM          deletions   DSTREAM
appended     INTERNAL windows, WSTREAM: every result when it is made, also if an equal one leaves its window just then
complete     RSTREAM: the whole answer, at each due time or whenever it changes
restored     …_RESTORE: also the rows that came and went between two due times
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.flow.bags import beyond
from windrow.flow.changes import Changes
from windrow.flow.graph import Edge
from windrow.flow.net import CHANGE, Net
from windrow.flow.view import View
from windrow.kernels.jit import Ints
from windrow.operators.ordering import SortKey, choose
from windrow.state.choice import Strategy
from windrow.state.pending import Pending
from windrow.state.rows import Delta, Epoch, empty_batch, one_batch
from windrow.synopses.groups import Groups

Stamped = tuple[pa.RecordBatch, Ints]
"""Rows of the output, and their times."""


@dataclass(frozen=True)
class Ordering:
    """ORDER BY (column, descending, nulls first) and LIMIT of complete answers; `shown` are the output columns."""

    terms: Sequence[tuple[str, bool, bool]]
    limit: int | None
    offset: int
    shown: Sequence[str]


class Emission:
    """Made for one kind of output; `columns` is the schema of what `step` gives."""

    def __init__(self, kind: str, edge: Edge, strategy: Strategy, ordering: Ordering | None, *, periodic: bool) -> None:
        self.kind = kind
        self._periodic = periodic
        self._ordering = ordering
        shown = edge.schema if ordering is None else pa.schema([edge.schema.field(name) for name in ordering.shown])
        self.schema = pa.schema([pa.field(CHANGE, pa.string()), *shown]) if kind == "changes" else shown
        self._shown = shown
        whole = kind in ("complete", "restored answers")
        self._view = View(edge, strategy) if whole else None
        without = kind == "appended" or (kind == "complete" and periodic)
        self._changes = None if without else Changes(shown)
        self._before: pa.RecordBatch | None = None
        self._waiting = Pending(shown)
        """Restored rows since the last due time."""

    def step(self, delta: Delta, epoch: Epoch, due: Ints) -> list[Stamped]:
        """What comes out in this epoch; a periodic query has these due times in it, ascending."""
        looked_at = due if self._periodic and not self.kind.startswith("restored") else None
        net = None if self._changes is None else self._changes.step(self._seen(delta), epoch, looked_at)
        if self._view is not None:
            self._view.add(delta)
        out = self._appended(delta, due) if self.kind == "appended" else self._put_out(net, due)
        if self._view is not None:
            self._view.settle(epoch.upto)
        return out

    def _appended(self, delta: Delta, due: Ints) -> list[Stamped]:
        """What was made since; in a periodic query, at the due time that shows it."""
        came = self._seen(delta).came
        made: Stamped = came.batch, came.ts
        if self._periodic:
            batch, times = self._until_due(made, due)
            made = batch, due[np.searchsorted(due, times)] if len(times) else times
        batch, times = made
        order = np.argsort(times, kind="stable")
        return _some((batch.take(pa.array(order)), times[order]))

    def _put_out(self, net: Net | None, due: Ints) -> list[Stamped]:
        match self.kind:
            case "changes":
                assert net is not None
                return _some(net.signed(self.schema))
            case "insertions" | "deletions":
                assert net is not None
                return _some(net.side(1 if self.kind == "insertions" else -1))
            case "complete":
                instants = due if net is None else np.unique(net.times)
                return self._complete(instants)
            case "restored insertions":
                assert net is not None
                batch, times = self._until_due(net.side(1), due)
                return _some((batch, due[np.searchsorted(due, times)]))
            case _:
                assert net is not None
                return self._restored(net, due)

    def _complete(self, instants: Ints) -> list[Stamped]:
        assert self._view is not None
        if not len(instants):
            return []
        batch, offsets = self._view.at(instants)
        if self._ordering is not None:
            return self._ordered(batch, offsets, instants)
        return _some((batch, np.repeat(instants, np.diff(offsets))))

    def _ordered(self, batch: pa.RecordBatch, offsets: Ints, instants: Ints) -> list[Stamped]:
        ordering = self._ordering
        assert ordering is not None
        keys = [SortKey(batch.column(name), desc, first) for name, desc, first in ordering.terms]
        shown = self._arranged(batch)
        keys += [SortKey(column) for column in shown.columns]
        chosen = choose(offsets, keys, None, ordering.limit, ordering.offset)
        times = np.repeat(instants, np.diff(offsets))[chosen]
        return _some((shown.take(pa.array(chosen)), times))

    def _seen(self, delta: Delta) -> Delta:
        """Without the columns that only sort."""
        if self._ordering is None:
            return delta
        came, cut = (rows.with_batch(self._arranged(rows.batch)) for rows in (delta.came, delta.cut))
        return Delta(came, cut)

    def _arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._ordering is None:
            return batch
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self._shown.names], schema=self._shown)

    def _restored(self, net: Net, due: Ints) -> list[Stamped]:
        """The answer at each due time, and what came and went again since the one before."""
        assert self._view is not None
        gone, went = net.side(-1)
        gone, went = self._until_due((self._arranged(gone), went), due)
        if not len(due):
            return []
        home = np.searchsorted(due, went)
        batch, offsets = self._view.at(due)
        batch = self._arranged(batch)
        out = []
        for place, tau in enumerate(due.tolist()):
            now = batch.slice(int(offsets[place]), int(offsets[place + 1] - offsets[place]))
            lost = gone.filter(pa.array(home == place))
            short = _surplus(lost, self._before if self._before is not None else empty_batch(self._shown))
            rows = one_batch([now, short], self._shown)
            out += _some((rows, np.full(rows.num_rows, tau)))
            self._before = now
        return out

    def _until_due(self, stamped: Stamped, due: Ints) -> Stamped:
        """The rows up to the last of these due times, and those that waited; a relation may end an epoch before it."""
        self._waiting.add(*stamped)
        return self._waiting.release(int(due[-1])) if len(due) else (empty_batch(self._shown), np.empty(0, np.int64))

    # ---- state ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(0 if part is None else part.nbytes for part in (self._view, self._changes, self._waiting))

    @property
    def rows(self) -> int:
        """Rows of the answer that are held, or whose end is waited for."""
        return sum(0 if part is None else len(part) for part in (self._view, self._changes, self._waiting))

    def snapshot(self) -> dict[str, pa.Table]:
        """All that later output depends on."""
        tables: dict[str, pa.Table] = {}
        for part in (self._view, self._changes):
            tables |= {} if part is None else part.snapshot()
        tables["waiting"] = self._waiting.table()
        if self._before is not None:
            tables["before"] = pa.Table.from_batches([self._before])
        return tables

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        for part in (self._view, self._changes):
            if part is not None:
                part.restore(tables)
        self._waiting.restore(tables["waiting"])
        if "before" in tables:
            self._before = one_batch(tables["before"].to_batches(), self._shown)


def _surplus(rows: pa.RecordBatch, taken: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without as many copies of each as `taken` has."""
    if not rows.num_rows or not taken.num_rows:
        return rows
    groups = Groups([one.type for one in rows.schema])
    codes = np.array(groups.encode(one_batch([rows, taken], rows.schema).columns))
    return rows.filter(pa.array(beyond(codes[: rows.num_rows], codes[rows.num_rows :])))


def _some(stamped: Stamped) -> list[Stamped]:
    return [stamped] if len(stamped[1]) else []
