"""What is known by name: streams and relations, their columns, their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from windrow.errors import BindError, CatalogError, InputError
from windrow.language import nodes, types, units
from windrow.language.arguments import expect_text, expect_whole_number
from windrow.language.positions import position
from windrow.language.user_functions import UserFunction

RESERVED_COLUMNS = frozenset({"_time", "_change"})
_NOT_DECLARED = frozenset({exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.INTERVAL})


@dataclass(frozen=True)
class Column:
    """A named, typed column."""

    name: str
    type: exp.DataType


@dataclass(frozen=True)
class Stream:
    """A declared stream; lateness is in ticks of its time column."""

    name: str
    columns: tuple[Column, ...]
    time: str
    sequence: str | None = None
    lateness: int = 0
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def timestamps(self) -> bool:
        """True when time is a TIMESTAMP, False when it counts BIGINT ticks."""
        return types.is_temporal(self.column(self.time).type)

    def column(self, name: str) -> Column:
        """The column of that name, whatever its case."""
        return next(column for column in self.columns if column.name.lower() == name.lower())

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema that pushed tables are held to."""
        return pa.schema([(column.name, types.to_arrow(column.type)) for column in self.columns])


@dataclass(frozen=True)
class Relation:
    """A declared relation; non_retroactive ones (NRR, thesis 3.3.1) touch only tuples that arrive later."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    non_retroactive: bool = False
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows."""
        return pa.schema([(column.name, types.to_arrow(column.type)) for column in self.columns])


Source: TypeAlias = Stream | Relation


class Catalog:
    """Streams and relations by name; names are case-insensitive, as in DuckDB."""

    def __init__(self, functions: Mapping[str, UserFunction] | None = None) -> None:
        self._sources: dict[str, Source] = {}
        self.functions: dict[str, UserFunction] = dict(functions or {})
        """The aggregates of the user, by name in capitals."""

    def add(self, source: Source) -> None:
        """Register a stream or relation under a free name."""
        if source.name.lower() in self._sources:
            raise CatalogError(f"{source.name} already exists; drop it first, or choose another name")
        self._sources[source.name.lower()] = source

    def remove(self, name: str) -> Source:
        """Forget a stream or relation."""
        if name.lower() not in self._sources:
            raise CatalogError(f"there is no stream or relation {name}{self.suggestion(name)}")
        return self._sources.pop(name.lower())

    def get(self, name: str) -> Source | None:
        """The stream or relation of that name, or None."""
        return self._sources.get(name.lower())

    def suggestion(self, name: str) -> str:
        """What the user may have meant, ready to stand behind an error message."""
        close = get_close_matches(name.lower(), self._sources, n=1)
        if close:
            return f"; did you mean {self._sources[close[0]].name}?"
        known = ", ".join(source.name for source in self)
        return f"; known are: {known}" if known else "; nothing is declared yet, use CREATE STREAM"

    def __iter__(self) -> Iterator[Source]:
        return iter(self._sources.values())


def stream_from_schema(
    name: str, schema: pa.Schema, *, time: str, sequence: str | None = None, lateness: int | str | timedelta = 0
) -> Stream:
    """Declare a stream for pushed data from an Arrow schema; lateness in ticks, as '2 seconds', or as a timedelta."""
    expect_text(name, "the name of a stream")
    if not isinstance(schema, pa.Schema):
        raise InputError(
            f"stream {name}: expected a pyarrow.Schema or a Spark DataFrame, found {type(schema).__name__}"
        )
    expect_text(time, f"time of stream {name}")
    if sequence is not None:
        expect_text(sequence, f"sequence of stream {name}")
    columns = tuple(map(_arrow_column, schema))
    stream = _checked_stream(Stream(name, columns, time, sequence))
    late_ticks = _lateness(lateness, stream)
    return _checked_stream(Stream(name, columns, stream.time, stream.sequence, late_ticks))


def _lateness(lateness: int | str | timedelta, stream: Stream) -> int:
    if isinstance(lateness, str):
        duration = units.duration_from_text(lateness, what="lateness")
        return units.ticks(duration, timestamps=stream.timestamps, what="lateness")
    if isinstance(lateness, timedelta):
        if not stream.timestamps:
            raise BindError(
                "lateness: a timedelta has a time unit, but the time column counts BIGINT ticks; give an int"
            )
        return lateness // timedelta(microseconds=1)
    return expect_whole_number(lateness, "lateness", "a whole number of ticks, a timedelta or a str like '2 seconds'")


def stream_from_node(node: nodes.CreateStream) -> Stream:
    """Declare a stream from its CREATE STREAM statement."""
    columns = _columns(node)
    plain = _checked_stream(
        Stream(node.this.name, columns, node.args["time"].name, _name(node.args.get("sequence"))), node
    )
    lateness = node.args.get("lateness")
    late_ticks = units.ticks(lateness, timestamps=plain.timestamps, what="LATENESS") if lateness is not None else 0
    return _checked_stream(
        Stream(
            plain.name, columns, plain.time, plain.sequence, late_ticks, _name(node.args.get("format")), _options(node)
        ),
        node,
    )


def relation_from_node(node: nodes.CreateRelation) -> Relation:
    """Declare a relation from its CREATE RELATION statement."""
    columns = _columns(node)
    names = {column.name.lower(): column.name for column in columns}
    key = []
    for part in node.args.get("key") or ():
        if part.name.lower() not in names:
            raise _error(part, f"relation {node.this.name} has no column {part.name} to be its key")
        if names[part.name.lower()] in key:
            raise _error(part, f"KEY names the column {part.name} twice")
        key.append(names[part.name.lower()])
    non_retroactive = bool(node.args.get("non_retroactive"))
    return Relation(
        node.this.name, columns, tuple(key), non_retroactive, _name(node.args.get("format")), _options(node)
    )  # fmt: skip


def _columns(node: exp.Expr) -> tuple[Column, ...]:
    columns = tuple(map(_column, node.args["columns"]))
    _check_columns(node.this.name, columns, node)
    return columns


def _column(definition: exp.ColumnDef) -> Column:
    try:
        return Column(definition.name, types.canonical(definition.args["kind"]))
    except BindError as error:
        raise _error(definition, f"column {definition.name}: {error.reason}") from None


def _arrow_column(field: pa.Field) -> Column:
    try:
        return Column(field.name, types.from_arrow(field.type))
    except BindError as error:
        raise BindError(f"column {field.name}: {error.reason}") from None


def _check_columns(name: str, columns: Sequence[Column], node: exp.Expr | None = None) -> None:
    seen: set[str] = set()
    for column in columns:
        place = _definition(node, column.name)
        if not column.name.strip():
            raise _error(place, f"{name}: a column needs a name that is not blank, found {column.name!r}")
        if column.name.lower() in seen:
            raise _error(place, f"{name} has two columns named {column.name}")
        if column.name.lower() in RESERVED_COLUMNS:
            raise _error(place, f"{name}: the column name {column.name} is reserved for answers; choose another")
        if column.name.startswith("__"):
            raise _error(place, f"{name}: names that begin with two underscores are reserved; rename {column.name}")
        if types.kind(column.type) in _NOT_DECLARED:
            raise _error(
                place,
                f"{name}: the column {column.name} is {types.type_name(column.type)}; lists, structs and intervals "
                "cannot be declared, give each of their parts a column",
            )
        seen.add(column.name.lower())


def _definition(node: exp.Expr | None, name: str) -> exp.Expr | None:
    """Where the last column of that name is declared."""
    same = [part for part in node.args["columns"] if part.name.lower() == name.lower()] if node is not None else []
    return same[-1] if same else node


def _checked_stream(stream: Stream, node: exp.Expr | None = None) -> Stream:
    _check_columns(stream.name, stream.columns, node)
    names = {column.name.lower(): column for column in stream.columns}
    for role, name in (("time", stream.time), ("sequence", stream.sequence)):
        if name is not None and name.lower() not in names:
            close = get_close_matches(name.lower(), names, n=1)
            hint = (
                f"; did you mean {names[close[0]].name}?"
                if close
                else f"; it has {', '.join(c.name for c in stream.columns)}"
            )
            place = node.args[role] if node is not None else None
            raise _error(place, f"stream {stream.name} has no column {name} to be its {role} column{hint}")
    time = names[stream.time.lower()]
    if types.kind(time.type) not in (exp.DType.TIMESTAMP, exp.DType.BIGINT):
        raise _error(
            node.args["time"] if node is not None else None,
            f"the time column {time.name} of stream {stream.name} must be TIMESTAMP or BIGINT, "
            f"but is {types.type_name(time.type)}",
        )
    if not 0 <= stream.lateness <= units.MAX_DURATION:
        fault = "must not be negative" if stream.lateness < 0 else f"is too long; at most {units.MAX_DURATION} ticks"
        place = node.args["lateness"] if node is not None else None
        raise _error(place, f"LATENESS of stream {stream.name} {fault}")
    sequence = None if stream.sequence is None else names[stream.sequence.lower()].name
    return Stream(
        stream.name, stream.columns, time.name, sequence, stream.lateness, stream.format, stream.options
    )  # fmt: skip


def _options(node: exp.Expr) -> dict[str, str]:
    options: dict[str, str] = {}
    for option in node.args.get("options") or ():
        if option.this.name in options:
            raise _error(option, f"the option {option.this.name} is given twice")
        options[option.this.name] = option.expression.name
    return options


def _name(node: exp.Expr | None) -> str | None:
    return None if node is None else node.name


def _error(node: exp.Expr | None, message: str) -> BindError:
    line, column = position(node) if node is not None else (None, None)
    return BindError(message, line=line, column=column)
