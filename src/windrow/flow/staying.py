"""INTERNAL windows beside external ones: a result stays until an external window drops one of its constituents.

What an INTERNAL window drops takes nothing back (thesis 3.3.2). So net insertions alone count, and each result ends
when the first external window loses its tuple. Cost: O(changes). Space: what waits for its end in `Changes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.flow.changes import Changes
from windrow.flow.leaves import rounded_up
from windrow.kernels.jit import Ints
from windrow.operators.operator import Operator
from windrow.state.rows import NEVER, Delta, Epoch, Rows

STAY = "__stay"


class Staying(Operator):
    """The root of a mixed query. `reaches`: the column with a tuple's timestamp, and how long its window holds it."""

    name = "INTERNAL"

    def __init__(self, below: pa.Schema, reaches: Mapping[str, int], slide: int | None) -> None:
        self._reaches = dict(reaches)
        self._shown = [place for place, one in enumerate(below) if one.name not in self._reaches]
        self.schema = pa.schema([below.field(place) for place in self._shown])
        self._timed = pa.schema([*self.schema, pa.field(STAY, pa.int64())])
        self._changes = Changes(self._timed)
        self._slide = slide
        self.due: Ints | None = None
        """The due times of this epoch, when they depend on what arrives: only they are looked at."""

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        (delta,) = inputs
        net = self._changes.step(Delta(self._with_end(delta.came), self._with_end(delta.cut)), epoch, self.due)
        batch, begins = net.side(1)
        ends = np.array(batch.column(STAY).to_numpy(zero_copy_only=False), np.int64)
        if self._slide is not None:
            ends = rounded_up(ends, self._slide)
        rows = Rows(pa.RecordBatch.from_arrays(batch.columns[:-1], schema=self.schema), begins, ends)
        return Delta(rows.filter(begins < ends), self.nothing)

    def _with_end(self, rows: Rows) -> Rows:
        end = np.full(len(rows), NEVER)
        for name, reach in self._reaches.items():
            end = np.minimum(end, rows.batch.column(name).to_numpy(zero_copy_only=False) + reach)
        columns = [*(rows.batch.column(place) for place in self._shown), pa.array(end)]
        return rows.with_batch(pa.RecordBatch.from_arrays(columns, schema=self._timed))

    @property
    def nbytes(self) -> int:
        return self._changes.nbytes

    @property
    def rows(self) -> int:
        return len(self._changes)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        return {}, self._changes.snapshot()

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        self._changes.restore(tables)

    def describe(self) -> str:
        return "results stay until an external window drops one of their tuples"
