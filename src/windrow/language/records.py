"""What is declared, as JSON: for checkpoints, and for shards elsewhere. Options may hold secrets, and stay here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from windrow.language import types
from windrow.language.catalog import Column, Relation, Stream


def stream_to_json(stream: Stream) -> dict[str, Any]:
    """What its rows depend on."""
    return {
        "name": stream.name,
        "columns": _columns_to_json(stream.columns),
        "time": stream.time,
        "sequence": stream.sequence,
        "lateness": stream.lateness,
        "format": stream.format,
    }


def stream_from_json(record: Mapping[str, Any]) -> Stream:
    """The inverse."""
    columns = _columns_from_json(record["columns"])
    return Stream(
        record["name"], columns, record["time"], record["sequence"], record["lateness"], record["format"]
    )  # fmt: skip


def relation_to_json(relation: Relation) -> dict[str, Any]:
    """What its rows depend on; the rows themselves are elsewhere."""
    return {
        "name": relation.name,
        "columns": _columns_to_json(relation.columns),
        "key": list(relation.key),
        "non_retroactive": relation.non_retroactive,
    }


def relation_from_json(record: Mapping[str, Any]) -> Relation:
    """The inverse."""
    columns = _columns_from_json(record["columns"])
    return Relation(record["name"], columns, tuple(record["key"]), record["non_retroactive"])


def _columns_to_json(columns: Iterable[Column]) -> list[list[str]]:
    return [[column.name, types.type_name(column.type)] for column in columns]


def _columns_from_json(columns: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(name, types.canonical(exp.DataType.build(kind, dialect="cql"))) for name, kind in columns)
