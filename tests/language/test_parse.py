# ruff: noqa: E501 - the cases are tables, one to a line
"""Texts parse, print and parse back to the same tree; both spellings of stream operators mean the same."""

from __future__ import annotations

import logging

import pytest
from sqlglot import exp

from tests.language.corpus import STATEMENTS, declared
from windrow import errors
from windrow.language import nodes
from windrow.language.binder import bind
from windrow.language.parse import parse, parse_one
from windrow.windows.spec import NowWindow


@pytest.mark.parametrize("text", STATEMENTS)
def test_prints_and_parses_back(text: str, caplog: pytest.LogCaptureFixture) -> None:
    statement = parse_one(text)
    printed = statement.sql("cql")
    again = parse_one(printed)
    assert again == statement
    assert again.sql("cql") == printed
    assert not caplog.records


@pytest.mark.parametrize(
    ("around", "inside"),
    [
        ("RSTREAM(SELECT src, dst FROM packets)", "SELECT Rstream(src, dst) FROM packets"),
        ("ISTREAM(SELECT DISTINCT src FROM packets)", "SELECT istream(DISTINCT src) FROM packets"),
        ("DSTREAM(SELECT * FROM packets)", "SELECT DSTREAM(*) FROM packets"),
        ("RSTREAM_RESTORE(SELECT src FROM packets)", "SELECT Rstream-restore(src) FROM packets"),
        ("ISTREAM-RESTORE(SELECT src FROM packets)", "SELECT Istream_restore(src) FROM packets"),
        ("WSTREAM(SELECT src FROM packets) [ROWS 3]", "SELECT Wstream(src)[ROWS 3] FROM packets"),
    ],
)
def test_both_spellings_of_an_operator_are_one_tree(around: str, inside: str) -> None:
    assert parse_one(around) == parse_one(inside)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT src FROM packets [RANGE 1 MIN] AS p",
        "SELECT src FROM packets [RANGE 1 MIN] p",
        "SELECT src FROM packets AS p [RANGE 1 MIN]",
        "SELECT src FROM packets p[RANGE 1 MIN]",
        "select src from packets[window 1 min] as p",
        "SELECT src\nFROM packets -- the stream\n  [RANGE 1 /* one */ MIN] p;",
    ],
)
def test_the_window_stands_before_or_behind_the_alias(text: str) -> None:
    assert parse_one(text).sql("cql", comments=False) == "SELECT src FROM packets [RANGE 1 MIN] AS p"


def test_words_of_windows_are_aliases_when_it_is_said() -> None:
    for text in ("packets [NOW] AS internal", 'packets [NOW] "internal"', "packets AS internal [NOW]"):
        (source,) = bind(f"SELECT internal.src FROM {text}", declared()).sources
        assert (source.alias, source.window) == ("internal", NowWindow())
    assert parse_one("SELECT src FROM packets [NOW] OFFSET 5").args["offset"].expression.name == "5"


def test_comments_leave_no_trace() -> None:
    text = "/* a */ SELECT /* b */ src /* c */, COUNT(*) -- d\nFROM packets [NOW] /* e */ GROUP BY src -- f"
    assert parse_one(text).sql("cql") == "SELECT src, COUNT(*) FROM packets [NOW] GROUP BY src"


def test_a_script_has_many_statements() -> None:
    script = "CREATE STREAM s (t BIGINT) TIME t;; SHOW STREAMS; -- the end\n"
    assert [type(statement) for statement in parse(script)] == [nodes.CreateStream, nodes.ShowObjects]
    assert parse(" -- nothing\n ; ") == []


def test_words_of_the_language_are_names_too() -> None:
    names = ["time", "range", "rows", "length", "count", "value", "slide", "offset", "key", "stream", "internal", "now"]
    columns = ", ".join(f"{name} INT" for name in names)
    assert [c.name for c in parse_one(f"CREATE STREAM s ({columns}) TIME time").args["columns"]] == names
    select = parse_one(f"SELECT {', '.join(names)} FROM s [NOW] WHERE value > 1 GROUP BY {', '.join(names)}")
    assert [column.name for column in select.expressions] == names


def test_quoted_names_keep_case_and_spaces() -> None:
    select = parse_one('SELECT "My Column" AS "a""b" FROM "My Stream" [NOW]')
    assert select.find(exp.Column).name == "My Column"
    assert select.expressions[0].alias == 'a"b'
    assert select.sql("cql") == 'SELECT "My Column" AS "a""b" FROM "My Stream" [NOW]'


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO s VALUES (1)", "UPDATE s SET a = 1", "DELETE FROM s", "CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT",
        "DROP TABLE t", "SET a = 1", "USE x", "ATTACH 'x'", "COPY s TO 'x'", "PRAGMA x", "CALL f()", "BEGIN", "COMMIT", "END",
        "GRANT SELECT ON s TO x", "ANALYZE s", "DESCRIBE s", "SUMMARIZE s", "KILL 1", "LOAD x", "INSTALL x", "VACUUM",
        "MERGE INTO s USING r ON TRUE WHEN MATCHED THEN DELETE", "TRUNCATE TABLE s", "COMMENT ON TABLE s IS 'x'", "SHOW TABLES",
        "VALUES (1)", "TABLE s", "PIVOT s ON a USING SUM(b)", "WITH x AS (SELECT 1) SELECT * FROM x", "EXECUTE x", "ELSE", "1", "a",
        "SHOW STREAMS; END", "CREATE STREAM s (t BIGINT) TIME t; END",
    ],
)  # fmt: skip
def test_other_statements_are_refused_and_nothing_is_logged(text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(errors.SyntaxError):
        parse(text)
    assert not caplog.records
