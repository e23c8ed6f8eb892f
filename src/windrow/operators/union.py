"""Merge-union, duplicates preserved (UNION ALL): the rows of all inputs with their lifetimes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.operators.operator import Operator
from windrow.state.rows import Delta, Epoch, Rows


class Union(Operator):
    """Inputs have the same columns in the same types; only their names may differ."""

    name = "union"
    stateless = True

    def __init__(self, schema: pa.Schema, *, merge: bool = False) -> None:
        self.schema = schema
        self._merge = merge
        """Inputs are first in, first out and live equally long: so is the output, when it is in the order of time."""

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Nothing is kept, nothing is changed."""
        came = Rows.concat([self._named(delta.came) for delta in inputs], self.schema)
        cut = Rows.concat([self._named(delta.cut) for delta in inputs], self.schema)
        if self._merge and len(came):
            came = came.take(np.argsort(came.ts, kind="stable"))
        return Delta(came, cut)

    def _named(self, rows: Rows) -> Rows:
        if rows.batch.schema.equals(self.schema):
            return rows
        return rows.with_batch(pa.RecordBatch.from_arrays(rows.batch.columns, schema=self.schema))
