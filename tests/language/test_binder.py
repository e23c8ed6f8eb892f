# ruff: noqa: E501 - the cases are tables, one to a line
"""Binding: names, types, output columns; a bound tree prints as a query that binds to the same columns and types."""

from __future__ import annotations

import pytest

from tests.language.corpus import QUERIES, declared
from windrow.language import types
from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.language.parse import parse_one


def described(query: BoundQuery) -> list[tuple[str, str]]:
    return [(column.name, types.type_name(column.type)) for column in query.columns]


@pytest.mark.parametrize("text", QUERIES)
def test_the_bound_tree_prints_and_binds_again(text: str, caplog: pytest.LogCaptureFixture) -> None:
    query = bind(text, declared())
    printed = query.ast.sql("cql")
    again = bind(printed, declared())
    assert described(again) == described(query)
    assert [source.window for source in again.sources] == [source.window for source in query.sources]
    assert again.ast.sql("cql") == printed
    assert not caplog.records


@pytest.mark.parametrize("text", QUERIES)
def test_a_tree_binds_like_its_text_and_is_not_changed(text: str) -> None:
    tree = parse_one(text)
    before = tree.sql("cql")
    assert described(bind(tree, declared())) == described(bind(text, declared()))
    assert tree.sql("cql") == before


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("src, length", [("src", "VARCHAR"), ("length", "INTEGER")]),
        ("SRC, \"LENGTH\" AS L", [("SRC", "VARCHAR"), ("L", "INTEGER")]),
        ("src, src", [("src", "VARCHAR"), ("src_1", "VARCHAR")]),
        ("length + 1, length / 2", [("length + 1", "BIGINT"), ("length / 2", "DOUBLE")]),
        ("COUNT(*), SUM(length), AVG(length)", [("count(*)", "BIGINT"), ("sum(length)", "BIGINT"), ("avg(length)", "DOUBLE")]),
        ("SUM(price) AS s, MIN(src) AS a, MAX(ts) AS b", [("s", "DECIMAL(38, 2)"), ("a", "VARCHAR"), ("b", "TIMESTAMP")]),
        ("VAR_SAMP(length)", [("var_samp(length)", "DOUBLE")]),
        ("QUANTILE(day, 0.5) AS q, MEDIAN(length) AS m", [("q", "DATE"), ("m", "DOUBLE")]),
        ("CASE WHEN ok THEN 1 END AS c, CAST(src AS BIGINT) AS d", [("c", "INTEGER"), ("d", "BIGINT")]),
        ("src LIKE 'a%' AS l, NULL AS n", [("l", "BOOLEAN"), ("n", "NULL")]),
    ],
)  # fmt: skip
def test_output_columns(select: str, expected: list[tuple[str, str]]) -> None:
    assert described(bind(f"SELECT {select} FROM packets [RANGE 1 MIN]", declared())) == expected


def test_star_takes_all_columns_once_per_using() -> None:
    query = bind("SELECT * FROM packets [NOW] JOIN hosts USING (src)", declared())
    names = [column.name for column in query.columns]
    assert names == ["ts", "seq", "src", "dst", "length", "price", "ok", "day", "owner", "weight"]
    only = bind("SELECT hosts.* FROM packets [NOW] JOIN hosts USING (src)", declared())
    assert [column.name for column in only.columns] == ["src", "owner", "weight"]


def test_names_are_resolved_to_their_source() -> None:
    query = bind("SELECT h.owner, length FROM packets [NOW] AS p JOIN hosts AS h ON h.src = dst", declared())
    assert query.ast.sql("cql") == (
        'SELECT h.owner AS "owner", p.length AS "length" FROM packets [NOW] AS p JOIN hosts AS h ON h.src = p.dst'
    )


def test_output_names_in_group_by_having_and_order_by_become_their_expressions() -> None:
    query = bind(
        "SELECT length % 2 AS odd, SUM(length) AS n FROM packets GROUP BY odd HAVING n > 1 ORDER BY 2, odd", declared()
    )
    assert query.ast.sql("cql") == (
        "SELECT packets.length % 2 AS odd, SUM(packets.length) AS n FROM packets [RANGE UNBOUNDED] "
        "GROUP BY packets.length % 2 HAVING (SUM(packets.length)) > 1 ORDER BY SUM(packets.length), packets.length % 2"
    )


def test_a_correlated_subquery_sees_the_outer_columns() -> None:
    query = bind(
        "SELECT src FROM packets [NOW] AS p WHERE EXISTS (SELECT 1 FROM hosts WHERE hosts.src = dst)", declared()
    )
    assert "hosts.src = p.dst" in query.ast.sql("cql")


def test_operators_are_noted() -> None:
    assert bind("SELECT src FROM packets [NOW]", declared()).operator is None
    assert bind("Istream(SELECT src FROM packets [NOW])", declared()).operator == "ISTREAM"
    query = bind("SELECT Wstream(src)[ROWS 4] FROM packets [RANGE 1 MIN INTERNAL]", declared())
    assert (query.operator, query.output_window.count, query.internal) == ("WSTREAM", 4, True)


def test_streams_are_found_through_windowed_subqueries() -> None:
    query = bind("SELECT COUNT(*) FROM (SELECT src FROM packets) [ROWS 10] AS x", declared())
    assert [stream.name for stream in query.streams] == ["packets"]
