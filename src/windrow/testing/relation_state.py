"""Relations over time: their updates, their rows at an instant, and the validity of each row of an NRR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.errors import InputError
from windrow.language.catalog import Relation

VALID_FROM, VALID_TO = "__from", "__to"


@dataclass(frozen=True)
class RelationUpdate:
    """One row comes ('+') or goes ('-') at an instant; a deletion names the whole row or only some columns of it.

    A row that comes at None is there from the beginning.
    """

    time: int | None
    change: str
    row: Mapping[str, Any]


@dataclass
class _Row:
    values: dict[str, Any]
    start: int | None  # None: there from the beginning
    end: int | None = None  # None: still there

    def exists(self, tau: int) -> bool:
        return (self.start is None or self.start <= tau) and (self.end is None or tau < self.end)


class RelationHistory:
    """All rows that a relation ever had, each with the updates that brought and removed it."""

    def __init__(self, relation: Relation, content: Sequence[RelationUpdate] | pa.Table | None) -> None:
        self._relation = relation
        self._rows: list[_Row] = []
        self.times: list[int] = []
        self.takes_back = False
        if content is None:
            return
        if isinstance(content, pa.Table):
            self._rows = [_Row(self._complete(row), None) for row in content.to_pylist()]
            return
        first = [update for update in content if update.time is None]
        for update in [
            *first,
            *sorted((one for one in content if one.time is not None), key=lambda one: one.time or 0),
        ]:
            if update.time is not None:
                self.times.append(update.time)
            if update.change == "+":
                self._rows.append(_Row(self._complete(update.row), update.time))
            elif update.change == "-":
                self.takes_back = not relation.non_retroactive
                self._find(update).end = update.time
            else:
                raise InputError(f"the change of a relation update is '+' or '-', not {update.change!r}")

    def at(self, tau: int) -> pa.Table:
        """The rows at τ: all updates with time <= τ are done."""
        rows = [row.values for row in self._rows if row.exists(tau)]
        return pa.Table.from_pylist(rows, schema=self._relation.schema)

    def with_validity(self) -> pa.Table:
        """All rows; a row joins the stream tuples with VALID_FROM < ts <= VALID_TO (NULL: no bound)."""
        bounds = [pa.field(VALID_FROM, pa.int64()), pa.field(VALID_TO, pa.int64())]
        schema = pa.schema([*self._relation.schema, *bounds])
        rows = [{**row.values, VALID_FROM: row.start, VALID_TO: row.end} for row in self._rows]
        return pa.Table.from_pylist(rows, schema=schema)

    def _complete(self, row: Mapping[str, Any]) -> dict[str, Any]:
        given = self._named(row)
        return {column.name: given.get(column.name) for column in self._relation.columns}

    def _named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        names = {column.name.lower(): column.name for column in self._relation.columns}
        unknown = [name for name in row if name.lower() not in names]
        if unknown:
            known = ", ".join(names.values())
            raise InputError(f"relation {self._relation.name} has no column {unknown[0]}; it has {known}")
        return {names[name.lower()]: value for name, value in row.items()}

    def _find(self, update: RelationUpdate) -> _Row:
        wanted = self._named(update.row)
        for row in self._rows:
            if row.end is None and all(row.values[name] == value for name, value in wanted.items()):
                return row
        raise InputError(f"relation {self._relation.name} has no row {dict(update.row)} to delete at {update.time}")
