"""Net changes: what goes and what comes at each instant, when rows that end and equal ones that begin cancel.

Rows whose end is known wait in a calendar for it. A cut needs no search: the row goes at the cut, and an opposite entry
at its old end cancels what waits there. Cost: O(changes), and one hash of each row. Space: the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windrow.flow.net import Net, Part, dictionary, netted
from windrow.kernels.jit import Ints
from windrow.state.buffer import Buffer
from windrow.state.calendar import Calendar
from windrow.state.rows import NEVER, Delta, Epoch

_TIME, _SIGN = "__ts", "__sign"
FEW = 4096
"""So many codes of rows are kept for the next epoch."""


class Changes:
    """Turns the lifetimes of an edge into net changes per instant, epoch by epoch."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._ends: Buffer = Calendar(schema, 0)
        self._revived: Buffer = Calendar(schema, 0)
        self._unseen: list[Part] = []
        self._known = dictionary(schema)
        """Codes of rows and instants, to find equal ones; those of earlier epochs are of no use, but do no harm."""

    def __len__(self) -> int:
        return len(self._ends) + len(self._revived) + sum(len(times) for _, times, _ in self._unseen)

    def step(self, delta: Delta, epoch: Epoch, due: Ints | None = None) -> Net:
        """The net changes of one epoch; with `due` (ascending) only those between due times."""
        came, cut = delta.came, delta.cut
        parts: list[Part] = [(came.batch, came.ts, 1), (cut.batch, cut.ts, -1)]
        known = came.exp != NEVER
        if known.any():
            ending = came.filter(known)
            now = ending.exp <= epoch.upto
            over = ending.filter(now)
            parts.append((over.batch, over.exp, -1))
            self._ends.insert(ending.filter(~now))
        announced = cut.exp != NEVER
        if announced.any():
            self._revived.insert(cut.filter(announced))
        for buffer, sign in ((self._ends, -1), (self._revived, 1)):
            if len(buffer):
                gone = buffer.rows(buffer.expire(epoch.upto))
                parts.append((gone.batch, gone.exp, sign))
                buffer.settle()
        parts = [part for part in parts if len(part[1])]
        if due is not None:
            parts = self._seen(parts, due)
        if len(self._known) > FEW:
            self._known = dictionary(self.schema)
        return netted(parts, self.schema, self._known)

    def _seen(self, parts: list[Part], due: Ints) -> list[Part]:
        """What is seen at these due times; a relation may end an epoch between two, and the rest waits."""
        parts, self._unseen = [*self._unseen, *parts], []
        if not len(due):
            self._unseen = parts
            return []
        seen = []
        for batch, times, sign in parts:
            now = times <= due[-1]
            if now.any():
                seen.append((batch.filter(pa.array(now)), due[np.searchsorted(due, times[now])], sign))
            if not now.all():
                self._unseen.append((batch.filter(pa.array(~now)), times[~now], sign))
        return seen

    @property
    def nbytes(self) -> int:
        """Bytes of the rows whose end is waited for."""
        unseen = sum(int(batch.nbytes) + times.nbytes for batch, times, _ in self._unseen)
        return self._ends.nbytes + self._revived.nbytes + unseen

    def snapshot(self) -> dict[str, pa.Table]:
        """All that waits."""
        parts = [
            pa.Table.from_batches([batch])
            .append_column(_TIME, pa.array(times))
            .append_column(_SIGN, pa.array(np.full(len(times), sign)))
            for batch, times, sign in self._unseen
        ]
        empty = pa.schema([*self.schema, pa.field(_TIME, pa.int64()), pa.field(_SIGN, pa.int64())]).empty_table()
        unseen = pa.concat_tables([empty, *(part.cast(empty.schema) for part in parts)])
        return {"ends": self._ends.snapshot(), "revived": self._revived.snapshot(), "unseen": unseen}

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        self._ends.restore(tables["ends"])
        self._revived.restore(tables["revived"])
        self._unseen = []
        for batch in tables["unseen"].to_batches():
            columns = pa.RecordBatch.from_arrays(batch.columns[:-2], schema=self.schema)
            times, signs = (np.array(column.to_numpy()) for column in batch.columns[-2:])
            for sign in (-1, 1):
                chosen = signs == sign
                if chosen.any():
                    self._unseen.append((columns.filter(pa.array(chosen)), times[chosen], sign))
