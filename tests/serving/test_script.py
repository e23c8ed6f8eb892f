"""Scripts are split where statements end, and every fault is told at its place in the whole script."""

from __future__ import annotations

import pytest

import windrow
from windrow.serving.script import UnreadableScript, load, read_script, split

STREAM = "CREATE STREAM s (t BIGINT, x INT) TIME t;\n"


def places(text: str) -> list[tuple[str, int, int]]:
    return [(piece.text, piece.line, piece.column) for piece in split(text)]


def test_semicolons_in_strings_names_and_comments_separate_nothing() -> None:
    text = """-- one; two
SELECT 'a;b' /* ; */, "c;d"; ;;
  SHOW QUERIES -- the end;
"""
    assert places(text) == [("SELECT 'a;b' /* ; */, \"c;d\"", 2, 1), ("SHOW QUERIES", 3, 3)]


def test_several_statements_in_one_line_keep_their_columns() -> None:
    assert places("SHOW STREAMS; SHOW QUERIES;") == [("SHOW STREAMS", 1, 1), ("SHOW QUERIES", 1, 15)]


@pytest.mark.parametrize("text", ["", "  \n", "-- only a comment;\n", "/* ; */ ;"])
def test_a_script_may_be_empty(text: str) -> None:
    assert places(text) == []


def faults(text: str) -> list[tuple[int | None, int | None, str]]:
    loaded = load(windrow.connect(), text, "s.cql")
    return [(fault.line, fault.column, fault.type) for fault in loaded.faults]


def test_each_broken_statement_is_told_at_its_place() -> None:
    text = STREAM + (
        "CREATE QUERY a AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"
        "  CREATE QUERY b AS\n    SELECT SUM(x) FRM s; CREATE QUERY c AS SELECT SUM(z) FROM s [RANGE 5 SLIDE 1];\n"
        "CREATE QUERY d AS SELECT FREQUENT(x, 2) FROM s [RANGE 5];\n"
        "CREATE QUERY e AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];\n"
        "CREATE QUERY e AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];\n"
    )
    assert faults(text) == [
        (2, 30, "BindError"),
        (4, 23, "SyntaxError"),
        (4, 55, "BindError"),
        (5, 26, "UnsupportedError"),
        (7, 1, "CatalogError"),
    ]


def test_an_open_quote_hides_no_other_statement() -> None:
    text = STREAM + (
        'CREATE QUERY a AS SELECT SUM(x) AS "total FROM s [RANGE 5 SLIDE 1];\n'
        "CREATE QUERY b AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"
        "CREATE QUERY c AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];\n"
    )
    db = windrow.connect()
    loaded = load(db, text, "s.cql")
    assert [(one.line, one.column) for one in loaded.faults] == [(2, 36), (3, 30)]
    assert "no closing" in loaded.faults[0].message
    assert [query.name for query in db.queries()] == ["c"]


def test_what_needs_a_failed_declaration_is_not_blamed() -> None:
    text = (
        "CREATE STREAM s (t TEXT, x INT) TIME t;\n" + STREAM.replace(" s ", " good ")
        + "CREATE QUERY a AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];\n"
        + "CREATE QUERY b AS SELECT SUM(x) FROM good [RANGE 5 SLIDE 1];\n"
        + "EXPLAIN a;\nDROP QUERY a;\nCREATE QUERY c AS SELECT SUM(x) FORM s;\n"
    )  # fmt: skip
    loaded = load(windrow.connect(), text, "s.cql")
    assert [(fault.line, fault.type) for fault in loaded.faults] == [(1, "BindError"), (7, "SyntaxError")]
    assert loaded.unchecked == {"s": ["a", "EXPLAIN a", "DROP QUERY a"]}


def test_a_stream_declared_twice_is_still_there_for_its_queries() -> None:
    text = STREAM + STREAM + "CREATE QUERY a AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];"
    loaded = load(windrow.connect(), text, "s.cql")
    assert ([fault.line for fault in loaded.faults], loaded.unchecked) == ([2], {})


def test_results_of_explain_and_show_are_kept() -> None:
    loaded = load(windrow.connect(), STREAM + "SHOW STREAMS; EXPLAIN SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];", "s.cql")
    assert loaded.results[0].to_pylist() == [{"name": "s", "columns": "t BIGINT, x INT"}]
    assert "γ group  SUM(x)" in loaded.results[1]


def test_a_script_that_is_no_text_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.cql"
    path.write_bytes(b"SHOW \xff")
    with pytest.raises(UnreadableScript, match="UTF-8"):
        read_script(str(path))
