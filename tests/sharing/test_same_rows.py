"""Queries whose WHERE says the same in other words share their panes, and go on when the first of them goes."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.testing import assert_same

DECLARED = "CREATE STREAM s (t BIGINT, a INT, p STRING, d DATE, m DECIMAL(10, 2)) TIME t"
SAME = [
    ("a IN (1, 2)", "a = 2 OR a = 1"),
    ("5 >= a", "NOT a > 5"),
    ("a = 1 AND p = 'x'", "'x' = p AND a = 1"),
    ("a BETWEEN 1 AND 3 AND p <> 'x'", "p <> 'x' AND a IN (3, 2, 1)"),
    ("d <= DATE '1970-01-05'", "d < '1970-01-06'"),
    ("a < 2.5 AND TRUE", "a <= 2"),
]


def query(where: str, window: int = 20) -> str:
    return f"SELECT p, COUNT(*) AS n, SUM(a) AS v FROM s [RANGE {window} SLIDE 5] WHERE {where} GROUP BY p"


def rows(begin: int, count: int = 40) -> pa.Table:
    rng = np.random.default_rng(begin)
    return pa.table(
        {
            "t": pa.array(np.arange(begin, begin + count)),
            "a": pa.array(rng.integers(0, 8, count), pa.int32(), mask=rng.random(count) < 0.1),
            "p": pa.array([("x", "y", "z")[i] for i in rng.integers(0, 3, count)]),
            "d": pa.array(rng.integers(0, 9, count).astype(np.int32), pa.int32()).cast(pa.date32()),
            "m": pa.array([Decimal(int(one)) for one in rng.integers(0, 9, count)], pa.decimal128(10, 2)),
        }
    )


def database() -> windrow.Database:
    db = windrow.connect()
    db.execute(DECLARED)
    return db


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_set_of_panes(one: str, other: str) -> None:
    db, alone = database(), database()
    first, second = db.query(query(one)), db.query(query(other, window=35))
    expected = alone.query(query(other, window=35))
    assert db.metrics()["streams"]["s"]["slices"] == 1
    assert "derived" not in second.explain()
    for begin in (0, 40, 80):
        for some in (db, alone):
            some.push("s", rows(begin))
        if begin == 40:
            db.drop(first.name)
    assert expected.answers().num_rows > 5
    assert_same(second.answers(), expected.answers())


@pytest.mark.parametrize("nothing", ["a < 1 AND a > 5", "a = 1 AND FALSE", "a BETWEEN 5 AND 1"])
@pytest.mark.parametrize("all_rows", ["a = 1 OR TRUE", "a IS NULL OR a IS NOT NULL", "a = 1 OR a IS NULL OR a <> 1"])
@pytest.mark.parametrize("first", [True, False])
def test_no_row_and_every_row_are_not_the_same(nothing: str, all_rows: str, first: bool) -> None:
    db = database()
    texts = [nothing, all_rows] if first else [all_rows, nothing]
    queries = {text: db.query(f"SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] WHERE {text}") for text in texts}
    db.push("s", rows(0))
    assert set(queries[nothing].answers()["n"].to_pylist()) == {0}
    assert queries[all_rows].answers()["n"].to_pylist()[-1] == 10
    assert db.ask(f"SELECT COUNT(*) AS n FROM s [RANGE 10] WHERE {nothing}")["n"].to_pylist() == [0]


def test_a_question_in_other_words() -> None:
    db = database()
    db.query(query("a IN (1, 2)"))
    db.push("s", rows(0))
    text = "SELECT p, SUM(a) AS v FROM s [RANGE 10] WHERE {} GROUP BY p"
    assert "rule SS1" in db.execute("EXPLAIN " + text.format("a = 2 OR a = 1"))
    assert_same(db.ask(text.format("a = 2 OR a = 1")), db.ask(text.format("a IN (1, 2)")))


def test_what_is_not_understood_must_have_the_same_text() -> None:
    """It must fail for the same rows too."""
    db = database()
    for where in ("a + 1 = 2", "a + 1 = 2", "2 = a + 1"):
        db.query(query(where))
    assert db.metrics()["streams"]["s"]["slices"] == 2


def test_every_derivation_names_a_rule() -> None:
    db = database()
    db.query(query("m < 1.50"))
    derived = db.query(query("m < 1.5"))  # the same program, though nobody understands it
    assert "(rule SS4" in derived.explain()
    assert "" not in db.sharing().column("rule").to_pylist()


def test_a_column_that_only_the_text_has_is_read_by_all_who_share_it() -> None:
    db = database()
    db.query(query("a = 1"))
    db.query(query("a = 1 AND (m = 1 OR TRUE)"))
    assert db.metrics()["streams"]["s"]["slices"] == 2


def test_explain_says_when_nothing_is_shared() -> None:
    db = database()
    assert "shared" not in db.execute("EXPLAIN " + query("a = 1"))  # there is nobody to share with
    db.query(query("a = 1"))
    assert "shared: no query has its rows and groups: it would have panes of its own" in db.execute(
        "EXPLAIN " + query("a = 2")
    )
