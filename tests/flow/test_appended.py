"""INTERNAL windows and WSTREAM: every result is appended when it is made, also when an equal one leaves just then."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.testing import Reference, assert_same

TABLES = {
    "a": pa.table({"t": [2, 9], "k": pa.array([1, 1], pa.int32())}),
    "b": pa.table({"t": list(range(0, 40, 4)), "k": pa.array([1] * 10, pa.int32())}),
}
TEXTS = {
    "SELECT k FROM b [RANGE 4 INTERNAL]": 10,
    "SELECT k FROM b [RANGE 4 INTERNAL SLIDE 4]": 10,
    "SELECT k FROM b [ROWS 1 INTERNAL]": 10,
    "SELECT a.k FROM a [RANGE 4 INTERNAL], b [RANGE 4 INTERNAL] WHERE a.k = b.k": 4,
    "ISTREAM(SELECT k FROM b [RANGE 4])": 1,
}


@pytest.mark.parametrize("strategy", ["upa", "nt", "direct"])
@pytest.mark.parametrize("text", TEXTS)
def test_as_many_rows_as_results(text: str, strategy: str) -> None:
    db = windrow.connect()
    for name in TABLES:
        db.execute(f"CREATE STREAM {name} (t BIGINT, k INT) TIME t")
    query = db.query(text, strategy=strategy)
    for name, table in TABLES.items():
        db.push(name, table)
    db.finish()
    assert query.answers().num_rows == TEXTS[text]
    assert_same(query.answers(), Reference(query.bound, TABLES).answers())


def test_an_integer_that_no_double_has_meets_doubles() -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM b (t BIGINT, x DOUBLE) TIME t; CREATE STREAM c (t BIGINT, k BIGINT) TIME t")
    tables = {"b": pa.table({"t": [1], "x": [2.0**53]}), "c": pa.table({"t": [1, 3], "k": [2**53 + 1, 4]})}
    queries = [
        db.query(f"SELECT k FROM c [RANGE 4] {how} SELECT x FROM b [RANGE 4]")
        for how in ("UNION ALL", "UNION", "EXCEPT", "INTERSECT ALL")
    ]
    for name, table in tables.items():
        db.push(name, table)
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, tables).answers())
