# ruff: noqa: E501 - the cases are tables, one to a line
"""Mutated queries: whatever the text, the answer is a bound query or a windrow.Error, and soon."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.language.corpus import DECLARATIONS, STATEMENTS, declared
from windrow.errors import Error
from windrow.language import nodes
from windrow.language.binder import bind
from windrow.language.catalog import relation_from_node, stream_from_node
from windrow.language.dialect import CQL
from windrow.language.parse import parse

CATALOG = declared()
CORPUS = [*STATEMENTS, *(text for text in DECLARATIONS.split(";") if text.strip())]
WORDS = [
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "UNION ALL", "EXCEPT", "JOIN", "ON", "USING",
    "EXISTS", "NOT", "IN", "(", ")", "[", "]", ",", ".", "*", "+", "-", "/", "=", "<", "::", "->", ":", ";", "?", "$1", "||",
    "RANGE", "ROWS", "NOW", "SLIDE", "UNBOUNDED", "INTERNAL", "PARTITION BY", "WINDOW", "OVER", "MIN", "SECONDS", "1", "0", "-1",
    "1.5", "1e999", "''", "'a'", '"x y"', "NULL", "TRUE", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS", "INT", "INTERVAL",
    "COUNT", "SUM", "Rstream", "Wstream", "Istream-restore", "DISTINCT", "ALL", "FILTER", "WITHIN GROUP", "LATERAL", "PIVOT",
    "VALUES", "UNNEST", "TABLESAMPLE", "QUALIFY", "BETWEEN", "LIKE", "IS", "packets", "ticks", "hosts", "src", "length", "ts", "k",
    "{", "}", "LAMBDA", "x", "COLUMNS", "EXCLUDE", "STRUCT", "MAP", "EXTRACT", "TRIM", "TIME", "KEY", "OPTIONS", "ESCAPE", "ANY",
]  # fmt: skip


def attempt(text: str) -> None:
    """Do with the text what a session does; only windrow.Error may come out."""
    try:
        statements = parse(text)
    except Error:
        return
    for statement in statements:
        target = statement
        try:
            if isinstance(statement, nodes.CreateStream):
                stream_from_node(statement)
                continue
            if isinstance(statement, nodes.CreateRelation):
                relation_from_node(statement)
                continue
            if isinstance(statement, nodes.CreateQuery):
                target = statement.args["expression"]
            statement.sql("cql")
            bind(target, CATALOG).ast.sql("cql")
        except Error:
            continue


def words_of(text: str) -> list[str]:
    return [text[token.start : token.end + 1] for token in CQL().tokenize(text)]


def mutate(rng: random.Random) -> str:
    words = words_of(rng.choice(CORPUS))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(words))
        kind = rng.randrange(7)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(at, words[at])
        elif kind == 2:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif kind == 3:
            words[at] = rng.choice(WORDS)
        elif kind == 4:
            words.insert(at, rng.choice(WORDS))
        elif kind == 5:
            words = words[: at + 1]
        else:
            donor = words_of(rng.choice(CORPUS))
            words = words[: at + 1] + donor[rng.randrange(len(donor)) :]
        if not words:
            break
    return " ".join(words)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_queries(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)
    for number in range(150):
        text = mutate(rng)
        try:
            attempt(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {number}: {text!r}") from error
        assert not [record for record in caplog.records if record.name == "sqlglot"], text


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_random_words(words: list[str]) -> None:
    attempt(" ".join(words))
    attempt("SELECT src FROM packets WHERE " + " ".join(words))


@settings(max_examples=300)
@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    attempt(text)
    attempt(f"SELECT {text} FROM packets")


MILLION = 1_000_000
LONG = {
    "in list": "SELECT src FROM packets WHERE length IN (" + "1," * 300_000 + "1)",
    "or chain": "SELECT src FROM packets WHERE " + "length=1 OR " * 80_000 + "ok",
    "sum chain": "SELECT " + "length+" * 120_000 + "1 FROM packets",
    "parentheses": "SELECT " + "(" * 400_000 + "1" + ")" * 400_000 + " FROM packets",
    "open parentheses": "SELECT " + "(" * 990_000,
    "case": "SELECT " + "CASE WHEN ok THEN " * 40_000 + "1" + " END" * 40_000 + " FROM packets",
    "open case": "SELECT " + "CASE WHEN ok THEN " * 50_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 50_000 + "packets" + ")" * 50_000,
    "not": "SELECT " + "NOT " * 240_000 + "ok FROM packets",
    "minus": "SELECT " + "- " * 450_000 + "length FROM packets",
    "functions": "SELECT " + "abs(" * 190_000 + "length" + ")" * 190_000 + " FROM packets",
    "casts": "SELECT length" + "::INT" * 190_000 + " FROM packets",
    "unions": " UNION ALL ".join(["SELECT src FROM packets"] * 29_000),
    "joins": "SELECT 1 FROM packets" + " JOIN hosts" * 80_000,
    "commas": "SELECT 1 FROM packets" + ", hosts" * 120_000,
    "select list": "SELECT " + "length," * 130_000 + "length FROM packets",
    "string": "SELECT '" + "x" * 990_000 + "' FROM packets",
    "open string": "SELECT '" + "x" * 990_000,
    "name": "SELECT " + "x" * 990_000 + " FROM packets",
    "number": "SELECT " + "9" * 990_000 + " FROM packets",
    "garbage": "%$#@!^&*~`" * 99_000,
    "brackets": "[" * 990_000,
    "dots": "SELECT a" + ".a" * 490_000,
    "statements": "SHOW STREAMS;" * 70_000,
    "comment": "/*" + "x" * 990_000,
    "newlines": "\n" * 990_000 + "SELECT ! FROM packets",
    "too long": "SELECT 1 FROM packets WHERE length IN (" + "1," * 600_000 + "1)",
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_a_text_of_a_megabyte_is_answered_soon(name: str) -> None:
    start = time.monotonic()
    attempt(LONG[name])
    assert time.monotonic() - start < 30  # some seconds alone; the tests may share the machine


@pytest.mark.parametrize(
    "text",
    [
        # What the fuzzers found, each once.
        "SELECT a FROM packets" + " JOIN hosts" * 60,  # exponential time inside sqlglot
        "SELECT src FROM packets [RANGE 1e999999999 SECONDS]",  # an exact number that fills the memory
        "SELECT " + "9" * 5000 + " FROM packets",  # int() refuses thousands of digits
        "SELECT COUNT(*) FROM COLUMNS(SELECT Istream(src) FROM packets [RANGE 1 MIN]) [ROWS 10] AS x",  # not DuckDB's SQL
        "SELECT src, length FROM packets (RSTREAM(SELECT src FROM hosts))",
        "ISTREAM(SHOW STREAMS",  # logged as a Command
        "SELECT CAST(src AS DECIMAL(OPTIONS, 2)) FROM packets",
        "SELECT TOP_K(src, 1e999) FROM packets",  # int(infinity)
        "SELECT src FROM packets [NOW] (a INT)",  # an alias that was dropped without a word
        "SELECT src FROM packets; END",  # dropped without a word
        "ELSE SELECT src FROM packets",
    ],
)
def test_found_before(text: str) -> None:
    with pytest.raises(Error):
        bind(text, CATALOG)
