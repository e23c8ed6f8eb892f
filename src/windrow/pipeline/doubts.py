"""What a run may stumble over, as far as it can be told without Spark: doubts, not errors.

A path may be filled before the run starts, and a format may be on the class path of the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from glob import glob

from windrow.errors import Error
from windrow.language.catalog import Relation, Stream
from windrow.pipeline.declared import FILE_FORMATS, NEVER_END, Declared
from windrow.pipeline.scan import local_path
from windrow.pipeline.sink import SinkSpec
from windrow.pipeline.sinks import OWN_OPTIONS

_ANYWHERE = frozenset({"kafka", "jdbc", "avro", "delta", "iceberg", "hudi", "mongodb", "kinesis", "pubsub"})
"""Spark's own, and connectors that many have."""
_SOURCES = FILE_FORMATS | NEVER_END | _ANYWHERE
_SINKS = frozenset(OWN_OPTIONS) | {"orc", "text", "xml"} | _ANYWHERE


def doubts(sources: Iterable[Stream | Relation], sinks: Mapping[str, SinkSpec]) -> list[str]:
    """One sentence for each; the sinks are those of queries with INTO, by the names of the queries."""
    found = [doubt for source in sources if source.format is not None for doubt in _of_source(source)]
    for query, sink in sinks.items():
        if _unknown(sink.format, _SINKS):
            found.append(f"query {query}: {_told(sink.format, _SINKS, 'batch writer')}")
    return found


def _of_source(source: Stream | Relation) -> Iterator[str]:
    try:
        declared = Declared.of(source)
    except Error as error:
        yield str(error)
        return
    if _unknown(declared.format, _SOURCES):
        kind = "streaming source" if isinstance(source, Stream) else "batch reader"
        yield f"{declared.owner}: {_told(declared.format, _SOURCES, kind)}"
    path = declared.options.get("path")
    local = local_path(path) if path and declared.format in FILE_FORMATS else None
    if local is not None and not (os.path.exists(local) or glob(local) or "{" in local):
        yield f"{declared.owner}: there is nothing at {path}, seen from here; correct the path, or create it"


def _unknown(format: str, known: frozenset[str]) -> bool:
    return format.lower() not in known and "." not in format  # a name with a dot is a class


def _told(format: str, known: frozenset[str], kind: str) -> str:
    close = get_close_matches(format.lower(), known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"Windrow and Spark have {', '.join(sorted(known - _ANYWHERE))}"
    return f"{format} is a {kind} only if some connector on Spark's class path has that name; {hint}"
