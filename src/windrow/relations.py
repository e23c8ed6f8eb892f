"""The rows of relations: loaded once, changed by updates that name whole rows or only some columns of them.

A relation with a KEY has no two rows with the same key; that of a non-retroactive one is never used again after its row
was deleted (thesis, Definition 3.1): results that joined with the old row would not tell which one they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import InputError
from windrow.flow.bags import beyond
from windrow.language import types
from windrow.language.bound import BoundQuery, Source
from windrow.language.catalog import Column, Relation
from windrow.state.rows import one_batch
from windrow.synopses.groups import Groups


@dataclass(frozen=True, eq=False)
class _Update:
    time: int
    came: pa.RecordBatch
    gone: pa.RecordBatch


@dataclass(eq=False)
class _Held:
    rows: pa.RecordBatch
    retired: pa.RecordBatch
    """The keys of rows of a non-retroactive relation that were deleted."""
    updated: int | None = None
    """When the last update took effect, or will."""
    recent: tuple[_Update, ...] = ()
    """Updates that a query registered now might have to see at their time."""


class Relations:
    """All relations that queries read, by name."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def known(self, relation: Relation) -> bool:
        """Whether its rows are here."""
        return relation.name.lower() in self._held

    def load(self, relation: Relation, table: pa.Table) -> None:
        """Its first rows."""
        rows = _conform(relation, table, relation.columns)
        _refuse_same_keys(relation, rows)
        self._held[relation.name.lower()] = _Held(rows, rows.slice(0, 0))

    def forget(self, relation: Relation) -> None:
        """It was dropped."""
        self._held.pop(relation.name.lower(), None)

    def table(self, relation: Relation) -> pa.Table:
        """Its rows."""
        return pa.Table.from_batches([self.batch(relation)])

    def batch(self, relation: Relation) -> pa.RecordBatch:
        """Its rows, none if nobody has loaded it."""
        held = self._held.get(relation.name.lower())
        return one_batch([], relation.schema) if held is None else held.rows

    def seen_from(self, relation: Relation, since: int) -> tuple[pa.RecordBatch, list[tuple[int, Any, Any]]]:
        """For a query that begins after `since`: the rows that it finds, and the updates (time, came, gone) to come."""
        held = self._held.get(relation.name.lower())
        later = [] if held is None else [one for one in held.recent if one.time > since]
        rows = self.batch(relation)
        if later:
            came = one_batch([one.came for one in later], relation.schema)
            gone = one_batch([one.gone for one in later], relation.schema)
            rows = _without(one_batch([rows, gone], relation.schema), came)
        return rows, [(one.time, one.came, one.gone) for one in later]

    def updated(self, relation: Relation) -> int | None:
        """The time of its last update: later ones may not be earlier."""
        held = self._held.get(relation.name.lower())
        return None if held is None else held.updated

    def update(
        self, relation: Relation, came: Any, gone: Any, time: int, *, past: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The whole rows that come and go; an InputError changes nothing. No query will begin before `past`."""
        held, added, removed = self._changed(relation, came, gone, time, past)
        self._held[relation.name.lower()] = held
        return added, removed

    def check(
        self, relation: Relation, came: Any, gone: Any, time: int, *, past: int
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The same, and nothing changes."""
        _, added, removed = self._changed(relation, came, gone, time, past)
        return added, removed

    def _changed(
        self, relation: Relation, came: Any, gone: Any, time: int, past: int
    ) -> tuple[_Held, pa.RecordBatch, pa.RecordBatch]:
        nothing = one_batch([], relation.schema)
        held = self._held.get(relation.name.lower()) or _Held(nothing, nothing)
        if held.updated is not None and time < held.updated:
            raise InputError(
                f"relation {relation.name} was updated at {held.updated}, and an update at {time} would come before "
                "it; give updates in the order of time. Nothing was changed"
            )
        leaving = _matching(relation, held.rows, gone)
        left = np.ones(held.rows.num_rows, np.bool_)
        left[leaving] = False
        removed = held.rows.take(pa.array(leaving, pa.int64()))
        added = held.rows.slice(0, 0) if came is None else _conform(relation, came, relation.columns)
        rows = one_batch([held.rows.filter(pa.array(left)), added], relation.schema)
        retired = held.retired
        if relation.non_retroactive:
            retired = one_batch([held.retired, removed], relation.schema)
        _refuse_same_keys(relation, rows)
        _refuse_retired_keys(relation, added, retired)
        recent = tuple(one for one in (*held.recent, _Update(time, added, removed)) if one.time > past)
        return _Held(rows, retired, time, recent), added, removed

    def snapshot(self) -> dict[str, pa.Table]:
        """All rows, the keys that are not to be used again, and the updates that are still to be seen."""
        tables: dict[str, pa.Table] = {}
        for name, held in self._held.items():
            tables[f"{name}.rows"] = pa.Table.from_batches([held.rows])
            tables[f"{name}.retired"] = pa.Table.from_batches([held.retired])
            tables[f"{name}.times"] = pa.table({"time": pa.array([held.updated, *(one.time for one in held.recent)])})
            for number, one in enumerate(held.recent):
                tables[f"{name}.came{number}"] = pa.Table.from_batches([one.came])
                tables[f"{name}.gone{number}"] = pa.Table.from_batches([one.gone])
        return tables

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        names = [name.removesuffix(".rows") for name in tables if name.endswith(".rows")]
        self._held = {}
        for name in names:
            updated, *times = tables[f"{name}.times"].column("time").to_pylist()
            recent = tuple(
                _Update(time, *(_whole(tables[f"{name}.{part}{number}"]) for part in ("came", "gone")))
                for number, time in enumerate(times)
            )
            rows, retired = (_whole(tables[f"{name}.{part}"]) for part in ("rows", "retired"))
            self._held[name] = _Held(rows, retired, updated, recent)


def every_relation(query: BoundQuery) -> list[Source]:
    """The relations that a query reads, also in subqueries, each once."""
    found: dict[str, Source] = {}
    for source in query.sources:
        if source.relation is not None:
            found.setdefault(source.relation.name.lower(), source)
        if source.subquery is not None:
            found |= {one.name.lower(): one for one in every_relation(source.subquery)}
    return list(found.values())


def _conform(relation: Relation, data: Any, wanted: Iterable[Column]) -> pa.RecordBatch:
    table = _table(relation, data)
    given = {name.lower(): name for name in table.schema.names}
    columns = list(wanted)
    missing = [column.name for column in columns if column.name.lower() not in given]
    unknown = [name for name in given.values() if name.lower() not in {c.name.lower() for c in relation.columns}]
    if missing or unknown:
        told = f"not declared is {', '.join(unknown)}" if unknown else f"missing is {', '.join(missing)}"
        raise InputError(
            f"the columns do not fit relation {relation.name}: {told}. Expected "
            f"{', '.join(column.name for column in columns)}; found {', '.join(given.values()) or 'none'}. "
            "Nothing was changed"
        )
    for one in columns:
        found, text = table.column(given[one.name.lower()]).type, types.is_text(one.type)
        if text != (pa.types.is_string(found) or pa.types.is_large_string(found)) and not pa.types.is_null(found):
            raise InputError(
                f"a value does not fit relation {relation.name}: column {one.name} is {types.type_name(one.type)}, and "
                f"{found} was given. Nothing was changed"
            )
    try:
        arrays = [table.column(given[one.name.lower()]).cast(types.to_arrow(one.type)) for one in columns]
    except pa.ArrowInvalid as error:
        raise InputError(f"a value does not fit relation {relation.name}: {error}. Nothing was changed") from error
    schema = pa.schema([(column.name, types.to_arrow(column.type)) for column in columns])
    return _whole(pa.Table.from_arrays(arrays, schema=schema))


def _without(rows: pa.RecordBatch, taken: pa.RecordBatch) -> pa.RecordBatch:
    codes = np.array(Groups([one.type for one in rows.schema]).encode(one_batch([rows, taken], rows.schema).columns))
    return rows.filter(pa.array(beyond(codes[: rows.num_rows], codes[rows.num_rows :])))


def _table(relation: Relation, data: Any) -> pa.Table:
    """Rows as a table: given as one, as a data frame, or as a list of dicts."""
    try:
        return pa.Table.from_pylist(data) if isinstance(data, list) else pa.table(data)
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"rows of relation {relation.name} are an Arrow table, a pandas DataFrame or a list of dicts, found "
            f"{type(data).__name__} ({error}). Nothing was changed"
        ) from None


def _whole(table: pa.Table) -> pa.RecordBatch:
    return one_batch(table.to_batches(), table.schema)


def _matching(relation: Relation, rows: pa.RecordBatch, gone: Any) -> list[int]:
    """The places of the rows to delete: for each one given, the first that is equal in the given columns."""
    if gone is None:
        return []
    table = _table(relation, gone)
    named = {name.lower() for name in table.schema.names}
    wanted = [column for column in relation.columns if column.name.lower() in named]
    given = _conform(relation, table, wanted or relation.columns)
    groups = Groups([one.type for one in given.schema])
    both = one_batch([rows.select(given.schema.names), given], given.schema)
    codes = np.array(groups.encode(both.columns))
    ours, theirs = codes[: rows.num_rows], codes[rows.num_rows :]
    taken: list[int] = []
    free = np.ones(len(ours), np.bool_)
    for place, code in enumerate(theirs.tolist()):
        found = np.flatnonzero((ours == code) & free)
        if not len(found):
            row = given.slice(place, 1).to_pylist()[0]
            raise InputError(f"relation {relation.name} has no row {row} to delete. Nothing was changed")
        free[found[0]] = False
        taken.append(int(found[0]))
    return taken


def _keys(relation: Relation, batch: pa.RecordBatch) -> list[pa.Array]:
    names = {column.name.lower(): column.name for column in relation.columns}
    return [batch.column(names[key.lower()]) for key in relation.key]


def _refuse_same_keys(relation: Relation, rows: pa.RecordBatch) -> None:
    if not relation.key or not rows.num_rows:
        return
    keys = _keys(relation, rows)
    codes = np.array(Groups([key.type for key in keys]).encode(keys))
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = [key[int(first[counts > 1][0])].as_py() for key in keys]
        raise InputError(
            f"relation {relation.name} would have two rows with key {_shown(relation, twice)}; delete the other one in "
            "the same update. Nothing was changed"
        )


def _refuse_retired_keys(relation: Relation, added: pa.RecordBatch, retired: pa.RecordBatch) -> None:
    if not relation.key or not relation.non_retroactive or not added.num_rows or not retired.num_rows:
        return
    keys = _keys(relation, one_batch([added, retired], relation.schema))
    codes = np.array(Groups([key.type for key in keys]).encode(keys))
    again = np.flatnonzero(np.isin(codes[: added.num_rows], codes[added.num_rows :]))
    if len(again):
        used = [key[int(again[0])].as_py() for key in keys]
        raise InputError(
            f"key {_shown(relation, used)} of the non-retroactive relation {relation.name} was used before; keys are "
            "not used again, because older results joined with the deleted row. Nothing was changed"
        )


def _shown(relation: Relation, values: list[Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in zip(relation.key, values, strict=True))
