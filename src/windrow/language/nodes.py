"""The syntax nodes that CQL adds to SQL, as sqlglot expressions: they declare and never compute."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

ArgTypes = dict[str, bool]


class Duration(exp.Expression):
    """`10 MIN`, or a bare number of ticks when unit is absent. `this` is a numeric literal, `unit` an exp.Var."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "unit": False}


class WindowSpec(exp.Expression):
    """What stands in brackets behind a stream: kind is RANGE, ROWS or NOW; length None means UNBOUNDED.

    RANGE has Durations for length, slide and offset; ROWS has integer literals and may have partition_by columns.
    """

    arg_types: ClassVar[ArgTypes] = {
        "kind": True,
        "length": False,
        "slide": False,
        "offset": False,
        "partition_by": False,
        "internal": False,
    }


class Windowed(exp.Expression):
    """`source [window] AS alias` in a FROM clause; the source is a Table or a Subquery without alias."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "window": True, "alias": False}


class StreamOperator(exp.Expression):
    """`RSTREAM(query)` and its kin; `kind` is the upper-case name, `window` is only for WSTREAM.

    `SELECT Rstream(a, b) FROM …` is normalised to this form, with the operator around the SELECT.
    """

    arg_types: ClassVar[ArgTypes] = {"this": True, "kind": True, "window": False}


class OutputWindow(exp.Expression):
    """`Wstream(value)[window]` inside an aggregate: `SUM(Wstream(SUM(a))[ROWS 10])` (thesis 3.4)."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "window": True}


class CreateStream(exp.Expression):
    """`CREATE STREAM name (columns) TIME ts [SEQUENCE seq] [LATENESS 2 SECONDS] [USING format] [OPTIONS (…)]`."""

    arg_types: ClassVar[ArgTypes] = {
        "this": True,
        "columns": True,
        "time": True,
        "sequence": False,
        "lateness": False,
        "format": False,
        "options": False,
    }


class CreateRelation(exp.Expression):
    """`CREATE RELATION name (columns) [KEY (columns)] [NON RETROACTIVE] [USING format] [OPTIONS (…)]`."""

    arg_types: ClassVar[ArgTypes] = {
        "this": True,
        "columns": True,
        "key": False,
        "non_retroactive": False,
        "format": False,
        "options": False,
    }


class CreateQuery(exp.Expression):
    """`CREATE QUERY name [INTO format [OPTIONS (…)]] AS query`."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "format": False, "options": False, "expression": True}


class DropObject(exp.Expression):
    """`DROP STREAM | RELATION | QUERY [IF EXISTS] name`."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "kind": True, "exists": False}


class ShowObjects(exp.Expression):
    """`SHOW STREAMS | RELATIONS | QUERIES | SHARING`."""

    arg_types: ClassVar[ArgTypes] = {"kind": True}


class Explain(exp.Expression):
    """`EXPLAIN [TEXT | JSON | MERMAID] query`, where the query may be the name of a registered one."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "format": False}


class Option(exp.Expression):
    """One `key 'value'` pair of OPTIONS (…)."""

    arg_types: ClassVar[ArgTypes] = {"this": True, "expression": True}
