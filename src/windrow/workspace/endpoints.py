"""Both ends of a query: where its answers go by INTO, and for EXPLAIN also where its rows come from."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.errors import BindError, SinkError
from windrow.language.catalog import Stream
from windrow.language.positions import position

if TYPE_CHECKING:
    from windrow.pipeline.sinks import SinkSpec


def sink_of(statement: exp.Expr) -> SinkSpec | None:
    """INTO format OPTIONS (…); an error points at the format."""
    place = statement.args.get("format")
    if place is None:
        return None
    from windrow.pipeline.sinks import sink_spec

    try:
        return sink_spec(
            place.name, {one.this.name: one.expression.name for one in statement.args.get("options") or ()}
        )
    except SinkError as error:
        line, column = position(place)
        raise BindError(str(error), line=line, column=column) from None


def endpoint_notes(streams: Sequence[Stream], frames: Container[str], into: SinkSpec | None) -> list[tuple[str, str]]:
    """For EXPLAIN; `frames` are the names of the streams that are DataFrames."""
    notes = []
    for stream in streams:
        topic = "source" if len(streams) == 1 else f"source of {stream.name}"
        if stream.name.lower() in frames:
            notes.append((topic, "row path: the rows come from a DataFrame"))
        elif stream.format is not None:
            from windrow.pipeline.scan_choice import expected_scan

            notes.append((topic, expected_scan(stream)))
    if into is not None:
        where = f" in {into.option('path')}" if into.option("path") else ""
        notes.append(("sink", f"{into.format}{where}"))
    return notes
