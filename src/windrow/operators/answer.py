"""From looked-up groups to the rows of an answer: HAVING, the select list, ORDER BY and LIMIT per window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.expressions import Compiler, Context, Program
from windrow.language import types
from windrow.operators.ordering import SortKey, limit, order
from windrow.plan.periodic import PeriodicAggregate

TIME = "_time"


@dataclass(frozen=True)
class AnswerRows:
    """A compiled select list over the columns key_0 … and aggregate_0 …"""

    outputs: tuple[Program, ...]
    having: Program | None
    terms: tuple[tuple[Program, bool, bool], ...]
    limit: int | None
    offset: int
    schema: pa.Schema
    time: str
    """The type of `_time`, as the stream's time column has it."""

    @classmethod
    def of(cls, plan: PeriodicAggregate, compiler: Compiler) -> AnswerRows:
        """Compile the parts of a plan that come after the aggregates."""
        time_type = types.to_arrow(plan.stream.column(plan.stream.time).type)
        columns = [(column.name, types.to_arrow(column.type)) for column in plan.columns]
        return cls(
            tuple(compiler.compile(output) for output in plan.outputs),
            None if plan.having is None else compiler.compile(plan.having),
            tuple((compiler.compile(term.value), term.descending, term.nulls_first) for term in plan.order),
            plan.limit,
            plan.offset,
            pa.schema([(TIME, time_type), *columns]),
            TIME,
        )

    def rows(
        self, taus: NDArray[np.int64], offsets: NDArray[np.int64], keys: Sequence[pa.Array], values: Sequence[pa.Array]
    ) -> pa.RecordBatch:
        """The answer of several windows: rows offsets[i] … offsets[i+1]-1 belong to τ = taus[i]."""
        length = int(offsets[-1] - offsets[0])
        counts = np.diff(offsets)
        columns = {f"key_{i}": array for i, array in enumerate(keys)}
        columns.update({f"aggregate_{i}": array for i, array in enumerate(values)})
        time = _ticks(taus if (counts == 1).all() else np.repeat(taus, counts), self.schema.field(0).type)
        context = Context(columns, length)
        kept: NDArray[np.bool_] | None = None
        if self.having is not None:
            kept = pc.fill_null(context.value(self.having), False).to_numpy(zero_copy_only=False)
        arrays = [time, *(context.value(program, kept) for program in self.outputs)]
        batch = pa.RecordBatch.from_arrays([self._typed(a, i) for i, a in enumerate(arrays)], schema=self.schema)
        if not self.terms and self.limit is None and not self.offset:
            return batch if kept is None else batch.filter(pa.array(kept))
        windows = np.repeat(np.arange(len(taus)), counts)
        sort_keys = [SortKey(context.value(program, kept), desc, first) for program, desc, first in self.terms]
        # Ties are broken by the output columns, so that an answer never depends on how the input was cut.
        sort_keys += [SortKey(array) for array in batch.columns[1:]]
        chosen = order(windows, sort_keys)
        if kept is not None:
            chosen = chosen[kept[chosen]]
        if self.limit is not None or self.offset:
            chosen = chosen[limit(windows[chosen], self.limit, self.offset)]
        return batch.take(pa.array(chosen))

    def _typed(self, array: pa.Array, index: int) -> pa.Array:
        wanted = self.schema.field(index).type
        return array if array.type == wanted else array.cast(wanted)


def _ticks(taus: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    return pa.array(taus, pa.int64()).view(kind)
