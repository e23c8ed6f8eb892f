"""Programs run in a context: the columns of one batch. Each distinct step is evaluated once per batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.expressions.arrays import Datum, Mask, as_array, normalise, whole
from windrow.expressions.program import Failure, Program, Value


class Context:
    """The columns of one batch, which are looked up when needed, and every value computed from them so far."""

    def __init__(self, columns: Mapping[str, Datum], length: int) -> None:
        self._columns = columns
        self._length = length
        self._values: dict[Program, Value] = {}
        self._casts: dict[Program, Datum] = {}

    @classmethod
    def of(cls, batch: Datum) -> Context:
        """The context of a RecordBatch or Table."""
        return cls(batch, batch.num_rows)  # batch[name] is a column

    def value(self, program: Program, rows: Mask | None = None) -> Datum:
        """The value as an array of the program's type; raises QueryError if a row has none.

        With `rows` (True = needed) only those rows may raise: the others are NULL where they failed.
        """
        if program.column is not None:
            return self._read(program, program.column)
        value = self._evaluated(program)
        for failure in value.failures:
            hit = np.broadcast_to(failure.rows, (self._length,))
            if (hit if rows is None else hit & rows).any():
                raise QueryError(f"{failure.source.sql} {failure.source.reason}")
        data = value.data
        return pa.repeat(data, self._length) if isinstance(data, pa.Scalar) else data

    def array(self, program: Program) -> pa.Array:
        """The value of every row as one array."""
        value = self.value(program)
        return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value

    def _evaluated(self, program: Program) -> Value:
        # A stack instead of recursion: expressions may be nested deeper than Python's stack.
        stack = [program]
        while stack:
            step = stack[-1]
            if step in self._values:
                stack.pop()
                continue
            missing = [argument for argument in step.arguments if argument not in self._values]
            if missing:
                stack.extend(missing)
                continue
            self._values[step] = self._leaf(step) or evaluate(step, [self._values[arg] for arg in step.arguments])
            stack.pop()
        return self._values[program]

    def _leaf(self, program: Program) -> Value | None:
        if program.constant is not None:
            return Value(program.constant)
        return None if program.column is None else Value(self._read(program, program.column))

    def _read(self, program: Program, name: str) -> Datum:
        if program in self._casts:
            return self._casts[program]
        try:
            array = whole(self._columns[name])
        except KeyError:
            array = whole(self._last(name))
        if array.type == program.type:
            return array
        array = normalise(array)
        # A column that is declared wider than it arrives, for instance BIGINT fed with int32.
        self._casts[program] = array if array.type == program.type else array.cast(program.type)
        return self._casts[program]

    def _last(self, name: str) -> Datum:
        """Of several columns with one name (GROUP BY a, a) the last one."""
        known: list[str] = list(getattr(self._columns, "column_names", self._columns))
        if name not in known:
            raise QueryError(f"the batch has no column {name}; it has {', '.join(known)}")
        return self._columns.column(len(known) - 1 - known[::-1].index(name))  # type: ignore[attr-defined]


def evaluate(program: Program, arguments: Sequence[Value]) -> Value:
    """One step on given arguments; if all are constants the result is a constant."""
    constant = all(isinstance(value.data, pa.Scalar) for value in arguments)
    if constant:
        arguments = [Value(as_array(value.data), value.failures) for value in arguments]
    value = program.control(arguments) if program.control is not None else _strict(program, arguments)
    data = whole(value.data)
    if data.type != program.type:
        data = data.cast(program.type)
    return Value(data[0] if constant and not isinstance(data, pa.Scalar) else data, value.failures)


def _strict(program: Program, arguments: Sequence[Value]) -> Value:
    assert program.kernel is not None
    try:
        result = program.kernel(*(value.data for value in arguments))
    except pa.ArrowInvalid as error:  # kernels find their failing rows themselves; this is for what nobody foresaw
        raise QueryError(f"{program.sql} cannot be evaluated: {error}") from error
    failures = {id(failure): failure for value in arguments for failure in value.failures}
    if isinstance(result, tuple):
        result, failed, *_ = result
        if failed.any():
            own = Failure(failed, program)
            failures[id(own)] = own
    return Value(result, tuple(failures.values()))
