"""What a compiled expression is, and what it gives: values, and the rows where there is none.

A row that fails (an overflow, a bad cast) does not stop the batch at once: `CASE WHEN b <> 0 THEN a // b END` must
not fail where b is 0. So failures travel with the values, CASE and its kin drop those of branches not taken, and
only what is left when the value is used becomes an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from sqlglot import exp

from windrow.expressions.arrays import Datum, Mask

Kernel: TypeAlias = Callable[..., Any]  # (*data) -> array, or (array, rows that failed, …)
Control: TypeAlias = "Callable[[Sequence[Value]], Value]"


@dataclass(frozen=True, eq=False)
class Failure:
    """Rows (all of them when of length one) for which `source` has no value, and why."""

    rows: Mask
    source: Program


@dataclass(frozen=True, eq=False)
class Value:
    """An array, or a scalar when the expression is constant; NULL stands where a row failed."""

    data: Datum
    failures: tuple[Failure, ...] = ()

    def restricted(self, rows: Mask) -> tuple[Failure, ...]:
        """The failures that count when the value is used only in these rows."""
        kept = (Failure(failure.rows & rows, failure.source) for failure in self.failures)
        return tuple(failure for failure in kept if failure.rows.any())

    def failed(self) -> Mask:
        """True in the rows without a value."""
        result: Mask = np.zeros(1, dtype=np.bool_)
        for failure in self.failures:
            result = result | failure.rows
        return result


@dataclass(frozen=True, eq=False)
class Program:
    """One step and the programs of its arguments. Equal expressions of one Compiler are the same object.

    A leaf has a `column` or a `constant`; a step has a `kernel`, or a `control` that also sees the failures.
    """

    op: str
    type: pa.DataType
    arguments: tuple[Program, ...] = ()
    kernel: Kernel | None = None
    control: Control | None = None
    column: str | None = None
    constant: Datum | None = None
    reason: str = "has no value for some row"
    node: exp.Expr | None = field(default=None, repr=False)

    @property
    def sql(self) -> str:
        """The SQL text of the expression that first needed this step, for messages."""
        try:
            text = self.node.sql(dialect="duckdb") if self.node is not None else self.op
        except RecursionError:
            text = self.op
        return text if len(text) <= 200 else text[:197] + "..."

    def columns(self) -> frozenset[str]:
        """The names of the columns it reads."""
        names: set[str] = set()
        seen: set[int] = set()
        stack = [self]
        while stack:
            program = stack.pop()
            if id(program) not in seen:
                seen.add(id(program))
                stack.extend(program.arguments)
                if program.column is not None:
                    names.add(program.column)
        return frozenset(names)
