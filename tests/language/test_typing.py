"""Types of expressions, and the errors of those that have none."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from windrow.errors import BindError
from windrow.language import types
from windrow.language.positions import position
from windrow.language.typing import infer

COLUMNS = {
    "a": types.INTEGER,
    "i": types.BIGINT,
    "x": types.DOUBLE,
    "f": types.FLOAT,
    "d": types.decimal(10, 2),
    "s": types.TEXT,
    "b": types.BOOLEAN,
    "ts": types.TIMESTAMP,
    "day": types.DATE,
}


def name_of(text: str) -> str:
    return types.type_name(infer(parse_one(text, dialect="duckdb"), lambda column: COLUMNS[column.name]))


def refusal(text: str) -> BindError:
    with pytest.raises(BindError) as caught:
        name_of(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1", "INTEGER"),
        ("2147483648", "BIGINT"),
        ("-9223372036854775808", "BIGINT"),
        ("1.5", "DOUBLE"),
        ("1e3", "DOUBLE"),
        ("'x'", "VARCHAR"),
        ("NULL", "NULL"),
        ("a + 1", "BIGINT"),
        ("a / 2", "DOUBLE"),
        ("a // 2", "BIGINT"),
        ("f + a", "DOUBLE"),
        ("d * 2", "DOUBLE"),
        ("-a", "BIGINT"),
        ("-5", "INTEGER"),
        ("a & 1", "BIGINT"),
        ("a < x", "BOOLEAN"),
        ("ts > '2024-01-01'", "BOOLEAN"),
        ("a IN (1, 2.5)", "BOOLEAN"),
        ("s LIKE 'a%'", "BOOLEAN"),
        ("CASE WHEN b THEN 1 ELSE 2.5 END", "DOUBLE"),
        ("COALESCE(a, i)", "BIGINT"),
        ("NULLIF(a, 1.5)", "INTEGER"),
        ("GREATEST(ts, day)", "TIMESTAMP"),
        ("day + 1", "DATE"),
        ("day - day", "BIGINT"),
        ("day + INTERVAL 1 HOUR", "TIMESTAMP"),
        ("ts - ts", "INTERVAL"),
        ("abs(a)", "BIGINT"),
        ("ceil(a)", "DOUBLE"),
        ("round(x, 1)", "DOUBLE"),
        ("sign(x)", "TINYINT"),
        ("length(s)", "BIGINT"),
        ("s || a", "VARCHAR"),
        ("a::DECIMAL(9, 1)", "DECIMAL(9, 1)"),
        ("TRY_CAST(s AS DATE)", "DATE"),
        ("extract(year FROM ts)", "BIGINT"),
        ("extract(epoch FROM ts)", "DOUBLE"),
        ("date_trunc('day', day)", "TIMESTAMP"),
        ("epoch_ms(ts)", "BIGINT"),
        ("epoch_ms(i)", "TIMESTAMP"),
        ("(a)", "INTEGER"),
        ("NULL + 1", "BIGINT"),
    ],
)
def test_types(text: str, name: str) -> None:
    assert name_of(text) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lenght(s)", "did you mean length"),
        ("is_finite(x)", "did you mean isfinite"),
        ("frobnicate(a)", "no function"),
        ("isfinite(x, 1)", "takes 1 argument, not 2"),
        ("abs(s)", "needs a number, but s is VARCHAR"),
        ("s + 1", "needs a number"),
        ("lower(a)", "needs a VARCHAR"),
        ("a AND b", "needs a BOOLEAN"),
        ("NOT a", "BOOLEAN"),
        ("a = s", "cannot mix INTEGER and VARCHAR"),
        ("b < 1", "cannot mix"),
        ("a = '1'", "cannot mix"),
        ("s = 1", "CAST"),
        ("ts = 'soon'", "'soon' is no TIMESTAMP"),
        ("ts = 1", "cannot mix"),
        ("CASE WHEN a THEN 1 END", "WHEN needs a BOOLEAN"),
        ("CASE WHEN b THEN 1 ELSE 'x' END", "CASE cannot mix"),
        ("COALESCE(a, s)", "coalesce cannot mix"),
        ("9223372036854775808", "does not fit in a BIGINT"),
        ("-9223372036854775809", "does not fit"),
        ("x // 2", "// needs an integer"),
        ("x & 1", "needs an integer"),
        ("date_trunc('eon', ts)", "does not know the part eon"),
        ("extract(eon FROM ts)", "does not know the part"),
        ("a::HUGEINT", "is not supported"),
        ("ts - 1", "needs a number"),
        ("a IN (SELECT 1)", "cannot be used"),
        ("a[1]", "cannot be used"),
        ("count(a)", "cannot be used"),
        ("md5(s)", "no function md5"),
        ("ceil(x, 2)", "cannot be used"),
        ("(ts - ts) = INTERVAL 2 DAY", "cannot compare"),
        ("s LIKE 1", "needs a VARCHAR"),
        ("a IN (1, 'x')", "cannot mix"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    error = refusal(text)
    assert words in str(error)
    assert error.line == 1


def test_the_place_of_an_error_is_its_own() -> None:
    error = refusal("a > 1\n  AND abs(lower(s)) > 2")
    assert (error.line, error.column) == (2, 11)


def test_known_nodes_are_not_looked_into() -> None:
    expression = parse_one("sum(nonsense) + a", dialect="duckdb")
    given = infer(
        expression,
        lambda column: COLUMNS[column.name],
        lambda node: types.DOUBLE if isinstance(node, exp.Sum) else None,
    )
    assert types.type_name(given) == "DOUBLE"
    assert expression.this.type == types.DOUBLE


def test_every_node_gets_its_type() -> None:
    expression = parse_one("CASE WHEN a > -2 THEN (x + 1) * 2 ELSE 0 END", dialect="duckdb")
    infer(expression, lambda column: COLUMNS[column.name])
    assert all(node.type is not None for node in expression.walk() if not isinstance(node, exp.Identifier))


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    deep: exp.Expr = exp.column("a")
    for _ in range(5000):
        deep = exp.Add(this=deep, expression=exp.Literal.number(1))
    with pytest.raises(BindError, match="deeper than 500"):
        infer(deep, lambda column: types.INTEGER)


def test_position_looks_inside_and_around() -> None:
    query = parse_one("SELECT a +\n  bcd", dialect="duckdb")
    assert position(query.selects[0]) == (1, 8)
    assert position(query.selects[0].expression) == (2, 3)
    invented = exp.Null()
    query.selects[0].set("expression", invented)
    assert position(invented) == (1, 8)
    assert position(exp.Null()) == (None, None)
    assert position(None) == (None, None)
