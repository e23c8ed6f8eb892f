"""Predicates as sets of rows: what is said to be implied or disjoint is so on every row there is."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from windrow.language import types
from windrow.language.typing import infer
from windrow.plan.predicates import FALSE, TRUE, Predicate, predicate

COLUMNS = {"a": types.INTEGER, "b": types.BIGINT, "x": types.DOUBLE, "s": types.TEXT, "f": types.BOOLEAN,
           "d": types.DATE, "i": types.TIMESTAMP}  # fmt: skip


def read(text: str) -> Predicate:
    expression = parse_one(text, dialect="duckdb")
    infer(expression, lambda column: COLUMNS[column.name])
    return predicate(expression)


ATOMS = [
    "a = 1", "a <> 1", "a < 2", "a <= 2", "a > 1", "a >= 0", "2 > a", "a IN (0, 2)", "a NOT IN (1, 2)",
    "a BETWEEN 1 AND 2", "a NOT BETWEEN 1 AND 2", "a IS NULL", "a IS NOT NULL", "x < 0.5", "x >= -1", "x = 0.5",
    "x > 0.5", "s = 'u'", "s <> 'u'", "s < 'v'", "s IN ('u', 'w')", "f", "NOT f", "f IS NULL", "a + 1 = 2", "TRUE",
    "FALSE", "a IN (1, NULL)", "s LIKE 'u%'", "a < 1.5", "a = 0.5", "a <> 0.5", "a >= -0.5", "f IS TRUE",
    "f IS NOT TRUE", "a IS DISTINCT FROM 1", "a IS NOT DISTINCT FROM 1", "a = 1 + 1", "a > 2 * 3 - 5",
]  # fmt: skip
TEXTS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} AND {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} OR {two[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def world() -> duckdb.DuckDBPyConnection:
    """Every combination of a few values of each column, the bounds of the atoms among them."""
    values = {
        "a": [None, -1, 0, 1, 2, 3],
        "x": [None, -1.5, -1.0, 0.5, 0.75, float("nan")],
        "s": [None, "t", "u", "uu", "v", "w"],
        "f": [None, False, True],
    }
    connection = duckdb.connect()
    connection.execute("CREATE TABLE w (n INT, a INT, x DOUBLE, s VARCHAR, f BOOLEAN)")
    rows = [(n, *row) for n, row in enumerate(product(*values.values()))]
    connection.executemany("INSERT INTO w VALUES (?, ?, ?, ?, ?)", rows)
    return connection


def rows_of(world: duckdb.DuckDBPyConnection, text: str) -> set[int]:
    return {row[0] for row in world.execute(f"SELECT n FROM w WHERE {text}").fetchall()}


@given(TEXTS, TEXTS, TEXTS)
def test_sound(world: duckdb.DuckDBPyConnection, one: str, other: str, third: str) -> None:
    first, second, last = (rows_of(world, text) for text in (one, other, third))
    if read(one).implies(read(other)):
        assert first <= second
    if read(one).implies(read(other), read(third)):
        assert first <= second | last
    if read(one).disjoint(read(other)):
        assert not first & second
    if read(one).same(FALSE):
        assert not first
    if read(one).transparent and read(one).text == read(other).text:
        assert first == second


@given(TEXTS)
def test_a_predicate_is_itself_and_not_its_negation(world: duckdb.DuckDBPyConnection, text: str) -> None:
    assert read(text).same(read(text))
    assert read(text).implies(TRUE)
    if read(text).transparent:
        assert read(text).disjoint(read(f"NOT ({text})"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1 OR a = 2", "a IN (2, 1)"),
        ("a BETWEEN 1 AND 3", "a > 0 AND 4 > a"),
        ("a = 1 OR a = 2 OR a = 3", "a BETWEEN 1 AND 3"),  # there is nothing between two whole numbers
        ("NOT (a = 1 OR s = 'u')", "a <> 1 AND s <> 'u'"),
        ("a = 1 OR a >= 0", "a >= 0"),
        ("a IS NOT NULL", "a < 5 OR a >= 5"),
        ("a = 1 AND (s = 'u' OR s = 'v')", "(a = 1 AND s = 'u') OR (s = 'v' AND a = 1)"),
        ("f = TRUE", "f"),
        ("s LIKE 'u%' AND a = 1", "a = 1 AND s LIKE 'u%'"),
        ("a = 1 AND a = 2", "FALSE"),
        ("x < 1 OR x > 1", "x <> 1"),
        ("x > 0", "x > -0.0"),
        ("a < 4.5", "a <= 4"),
        ("a = 2", "a = 1 + 1"),
        ("f IS TRUE", "f"),
        ("a IS NOT DISTINCT FROM 3", "a = 3"),
        ("a IS DISTINCT FROM 3", "a <> 3 OR a IS NULL"),
        ("d <= DATE '2024-02-29'", "d < '2024-03-01'"),
        ("d = DATE '2024-01-01' OR d = '2024-01-02'", "d BETWEEN '2024-01-01' AND '2024-01-02'"),
        ("i < TIMESTAMP '2024-01-01 00:00:01'", "i <= '2024-01-01 00:00:00.999999'"),
        ("i >= '2024-01-01'", "i >= TIMESTAMP '2024-01-01 00:00:00.000'"),
    ],
)
def test_the_same_otherwise_written(one: str, other: str) -> None:
    assert read(one).same(read(other))
    if read(one).transparent:
        assert read(one) == read(other) and read(one).text == read(other).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a < 5 OR a >= 5", "TRUE"),  # NULL
        ("x BETWEEN 1 AND 3", "x = 1 OR x = 2 OR x = 3"),
        ("s LIKE 'u%'", "s >= 'u'"),  # true, but nobody knows
        ("a = 1", "b = 1"),
        ("a + 0 = 1", "a = 1"),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    assert not read(one).same(read(other))


def test_together_they_may_have_every_row() -> None:
    """Also where they are about another column."""
    assert read("a = 1").implies(read("x < 5"), read("x >= 5"), read("x IS NULL"))
    assert not read("a = 1").implies(read("x < 5"), read("x >= 5"))
    assert read("a BETWEEN 1 AND 6").implies(read("a < 3"), read("a IN (3, 4)"), read("a > 4"))
    assert not read("a BETWEEN 1 AND 6").implies(read("a < 3"), read("a = 4"), read("a > 4"))


def test_equal_texts_are_equal_predicates() -> None:
    """Of all pairs of atoms, and of what AND and OR make of them."""
    some = [read(text) for text in ATOMS]
    some += [read(f"{one} {how} {other}") for one, other in product(ATOMS[::3], ATOMS[1::3]) for how in ("AND", "OR")]
    by_text: dict[str, Predicate] = {}
    for one in (*some, TRUE, FALSE):
        if one.transparent:
            assert by_text.setdefault(one.text, one) == one
    assert len(by_text) > 100


def test_terms() -> None:
    assert len(read("s IN ('u', 'v', 'u')").terms) == 1
    assert len(read("s = 'u' OR a = 1 OR s = 'v' OR a = 7").terms) == 2
    assert read("s IN ('u', 'v')").disjoint_terms
    assert not read("s = 'u' OR a = 1").disjoint_terms
    assert not read("s LIKE 'u%'").transparent
    assert len(read("a IN (" + ", ".join(map(str, range(0, 200, 2))) + ")").terms) == 1
    assert not read("a IN (" + ", ".join(map(str, range(2000))) + ")").transparent  # too many values
    assert not read(" OR ".join(f"(a = {n} AND b = {n})" for n in range(100))).transparent  # too many terms
    assert not read("i = CAST('2024-2-1' AS TIMESTAMP)").transparent
    assert not read("i = CAST('2024-02-30' AS TIMESTAMP)").transparent


def test_constants_that_another_type_would_round_are_opaque() -> None:
    assert not read("b = 9007199254740993.0").transparent
    assert not read("x = 9007199254740993").transparent
    assert read("b = 9007199254740993").transparent
