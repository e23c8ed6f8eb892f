"""π: the select list, duplicates preserved; lifetimes pass through."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windrow.expressions import Context, Program
from windrow.operators.operator import Operator
from windrow.state.rows import Delta, Epoch, Rows


class Project(Operator):
    """One program per output column; a value of another type is cast to that of the schema."""

    name = "project"
    stateless = True

    def __init__(self, programs: Sequence[Program], schema: pa.Schema) -> None:
        self._programs = tuple(programs)
        self.schema = schema

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Row by row."""
        (delta,) = inputs
        return Delta(self.project(delta.came), self.project(delta.cut))

    def project(self, rows: Rows) -> Rows:
        """The same rows with the output columns."""
        if not len(rows):
            return self.nothing
        return rows.with_batch(projected(self._programs, rows.batch, self.schema))


def projected(programs: Sequence[Program], batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The values of programs as the columns of a schema."""
    context = Context.of(batch)
    arrays = []
    for program, field in zip(programs, schema, strict=True):
        array = context.array(program)
        arrays.append(array if array.type == field.type else _cast(array, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """To the type of the column; an integer that no double has becomes the nearest one, as SQL says."""
    return array.cast(kind, safe=not (pa.types.is_integer(array.type) and pa.types.is_floating(kind)))
