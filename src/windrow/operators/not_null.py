"""The rows without a NULL: only they can be equal to anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from windrow.operators.operator import Operator
from windrow.state.rows import Delta, Epoch, Rows


class NotNull(Operator):
    """Drops rows that have a NULL in any column."""

    name = "not null"
    stateless = True

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Row by row."""
        (delta,) = inputs
        return Delta(_complete(delta.came), _complete(delta.cut))


def _complete(rows: Rows) -> Rows:
    kept: Any = None
    for column in rows.batch.columns:
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            kept = valid if kept is None else kept & valid
    return rows if kept is None else rows.filter(kept)
