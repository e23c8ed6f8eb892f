"""A running plan: operators in the order in which they are stepped, each with the edges that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windrow.operators.operator import Operator
from windrow.plan.patterns import Pattern
from windrow.state.rows import Delta, Epoch


@dataclass(frozen=True)
class Edge:
    """The output of a node: its columns, its update pattern, and, if all rows live equally long, how long."""

    node: int
    schema: pa.Schema
    pattern: Pattern
    lifetime: int | None = None
    computed: Mapping[str, str] = field(default_factory=dict)
    """From the text of a group key or an aggregate call to the column that has it."""

    @property
    def strict(self) -> bool:
        """Whether rows may be cut."""
        return self.pattern is Pattern.STR


class Graph:
    """Nodes are added inputs first; the output of a node may be read by several others."""

    def __init__(self) -> None:
        self.operators: list[Operator] = []
        self._inputs: list[tuple[int, ...]] = []

    def add(self, operator: Operator, inputs: Sequence[Edge], pattern: Pattern, lifetime: int | None = None) -> Edge:
        """A node over these edges."""
        self.operators.append(operator)
        self._inputs.append(tuple(edge.node for edge in inputs))
        return Edge(len(self.operators) - 1, operator.schema, pattern, lifetime)

    def step(self, epoch: Epoch) -> list[Delta]:
        """What happens on every edge in this epoch."""
        deltas: list[Delta] = []
        for operator, inputs in zip(self.operators, self._inputs, strict=True):
            given = [deltas[place] for place in inputs]
            if operator.stateless and not any(map(len, given)):
                deltas.append(Delta(operator.nothing, operator.nothing))
            else:
                deltas.append(operator.step(given, epoch))
        return deltas

    @property
    def nbytes(self) -> int:
        """Bytes of all state."""
        return sum(operator.nbytes for operator in self.operators)

    @property
    def rows(self) -> int:
        """Rows in all state."""
        return sum(operator.rows for operator in self.operators)

    def snapshot(self) -> tuple[list[dict[str, Any]], dict[str, pa.Table]]:
        """Per node a dict, and tables named by node."""
        metas: list[dict[str, Any]] = []
        tables: dict[str, pa.Table] = {}
        for number, operator in enumerate(self.operators):
            meta, own = operator.snapshot()
            metas.append(meta)
            tables |= {f"{number}.{name}": table for name, table in own.items()}
        return metas, tables

    def restore(self, metas: Sequence[Mapping[str, Any]], tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        for number, (operator, meta) in enumerate(zip(self.operators, metas, strict=True)):
            start = f"{number}."
            own = {name[len(start) :]: table for name, table in tables.items() if name.startswith(start)}
            operator.restore(meta, own)
