"""Queries over small tables drawn in the text of the tests, and expected rows drawn likewise.

A table is a header and rows of cells between bars; a cell is a whole number, a number with a point, NULL, or text.
The comparison is the plainest there is: cells as text, sorted within one _time (or not, when order matters).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from tests.testing.engine_runs import engine_answers
from windrow.errors import UnsupportedError
from windrow.language.binder import bind
from windrow.language.catalog import Catalog, relation_from_node, stream_from_node, stream_from_schema
from windrow.language.nodes import CreateStream
from windrow.language.parse import parse
from windrow.testing import Reference


def cells(text):
    lines = [line for line in text.strip().splitlines() if line.strip() and not line.strip().startswith("#")]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def value(cell):
    if cell == "NULL":
        return None
    if re.fullmatch(r"-?\d+", cell):
        return int(cell)
    return float(cell) if re.fullmatch(r"-?\d+\.\d*", cell) else cell


def table(text):
    names, *rows = cells(text)
    columns = {name: [value(row[place]) for row in rows] for place, name in enumerate(names)}
    return pa.table({name: pa.array(column, pa.int64() if not column else None) for name, column in columns.items()})


def drawn(result):
    return [[str("NULL" if cell is None else cell) for cell in row.values()] for row in result.to_pylist()]


@pytest.fixture
def reference():
    """reference(query, s="…", t="…"): a Reference over streams drawn as tables whose time column is ts."""

    def build(query, *, relations=None, ddl="", start=None, since=None, until=None, **streams):
        catalog = Catalog()
        for statement in parse(ddl) if ddl else ():
            declare = stream_from_node if isinstance(statement, CreateStream) else relation_from_node
            catalog.add(declare(statement))
        tables = {name: table(text) if isinstance(text, str) else text for name, text in streams.items()}
        for name, content in tables.items():
            if catalog.get(name) is None:
                catalog.add(stream_from_schema(name, content.schema, time="ts"))
        return Reference(bind(query, catalog), tables, relations or {}, start=start, since=since, until=until)

    return build


@pytest.fixture
def check(reference):
    """check(query, expected, s="…"): the answers of the reference and of the engine are exactly the expected rows.

    `engine` says why the engine refuses a query.
    """

    def run(query, expected, *, ordered=False, engine=None, **world):
        names, *rows = cells(expected)

        def compare(result, how):
            assert result.schema.names == names, how
            found = drawn(result)
            times = [row[0] for row in found]
            assert times == sorted(times, key=value), f"{how}: answers are in the order of time"
            assert (found if ordered else sorted(found)) == (rows if ordered else sorted(rows)), how

        compare(reference(query, **world).answers(), "reference")
        if world.keys() & {"start", "since"}:
            return
        relations, ddl, until = (world.pop(key, None) for key in ("relations", "ddl", "until"))
        streams = {name: table(text) if isinstance(text, str) else text for name, text in world.items()}
        runs = engine_answers(query, streams, relations or {}, ddl=ddl or "", until=until)
        if engine is not None:
            with pytest.raises(UnsupportedError, match=engine):
                next(runs)
            return
        for how, result in runs:
            compare(result, how)

    return run
