"""From looked-up groups to the rows of an answer: HAVING, the select list, ORDER BY and LIMIT per window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from windrow.aggregates.sketched import error_of
from windrow.expressions import Compiler, Context, Program
from windrow.language import types
from windrow.operators.ordering import SortKey, choose
from windrow.plan.periodic import PeriodicAggregate

TIME = "_time"
ERROR = "error"
"""In the metadata of an approximate column: how far it may be off."""


@dataclass(frozen=True)
class AnswerRows:
    """A compiled select list over the columns of a lookup: `names` are those of the keys, then of the aggregates."""

    names: tuple[str, ...]
    outputs: tuple[Program, ...]
    having: Program | None
    terms: tuple[tuple[Program, bool, bool], ...]
    limit: int | None
    offset: int
    schema: pa.Schema
    plain: tuple[int, ...] | None
    """The places of the columns to hand out when there is nothing to compute."""

    @classmethod
    def of(cls, plan: PeriodicAggregate, compiler: Compiler) -> AnswerRows:
        """Compile the parts of a plan that come after the aggregates."""
        time_type = types.to_arrow(plan.stream.column(plan.stream.time).type)
        columns = [
            pa.field(column.name, types.to_arrow(column.type), metadata=_metadata(plan, output))
            for column, output in zip(plan.columns, plan.outputs, strict=True)
        ]
        outputs = tuple(compiler.compile(output) for output in plan.outputs)
        names = (*plan.key_names, *(one.text for one in plan.aggregations))
        places = tuple(names.index(program.column) for program in outputs if program.column is not None)
        ordinary = plan.having is None and not plan.order and plan.limit is None and not plan.offset
        return cls(
            names,
            outputs,
            None if plan.having is None else compiler.compile(plan.having),
            tuple((compiler.compile(term.value), term.descending, term.nulls_first) for term in plan.order),
            plan.limit,
            plan.offset,
            pa.schema([pa.field(TIME, time_type), *columns]),
            places if ordinary and len(places) == len(outputs) else None,
        )

    def rows(self, time: pa.Array, offsets: NDArray[np.int64], columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """The answer of several windows: rows offsets[i] … offsets[i+1]-1 (from offsets[0] on) belong to window i."""
        if self.plain is not None:
            return self._batch([time, *(columns[place] for place in self.plain)])
        context = Context(dict(zip(self.names, columns, strict=True)), len(time))
        kept: NDArray[np.bool_] | None = None
        if self.having is not None:
            kept = pc.fill_null(context.value(self.having), False).to_numpy(zero_copy_only=False)
        batch = self._batch([time, *(context.value(program, kept) for program in self.outputs)])
        if not self.terms and self.limit is None and not self.offset:
            return batch if kept is None else batch.filter(pa.array(kept))
        sort_keys = [SortKey(context.value(program, kept), desc, first) for program, desc, first in self.terms]
        # Ties are broken by the output columns, so that an answer never depends on how the input was cut.
        sort_keys += [SortKey(array) for array in batch.columns[1:]]
        chosen = choose(offsets - offsets[0], sort_keys, kept, self.limit, self.offset)
        return batch.take(pa.array(chosen))

    def _batch(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        typed = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(typed, schema=self.schema)


def _metadata(plan: PeriodicAggregate, output: exp.Expr) -> dict[str, str] | None:
    """How far the approximate aggregates in an output may be off."""
    used = {column.name for column in output.find_all(exp.Column)}
    errors = [error_of(one.name, one.parameters) for one in plan.aggregations if one.text in used]
    told = [error for error in errors if error is not None]
    return {ERROR: "; ".join(told)} if told else None
