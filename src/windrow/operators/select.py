"""σ: the rows that satisfy a predicate; lifetimes pass through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.expressions import Context, Program
from windrow.operators.operator import Operator
from windrow.state.rows import Delta, Epoch, Rows


class Select(Operator):
    """Rows for which the predicate is true, not NULL."""

    name = "select"
    stateless = True

    def __init__(self, predicate: Program, schema: pa.Schema) -> None:
        self._predicate = predicate
        self.schema = schema

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Row by row: what was let through is cut again, what was not is not."""
        (delta,) = inputs
        return Delta(self._kept(delta.came), self._kept(delta.cut))

    def _kept(self, rows: Rows) -> Rows:
        return rows.filter(holds(self._predicate, rows.batch)) if len(rows) else rows


def holds(predicate: Program, batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Where a predicate is true."""
    value = Context.of(batch).value(predicate)
    if value.null_count:
        value = pc.fill_null(value, False)
    kept: NDArray[np.bool_] = value.to_numpy(zero_copy_only=False)
    return kept
