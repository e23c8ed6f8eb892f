"""Invariant 1 with every synopsis: windows of many lengths, due one at a time and all at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.testing import Reference, assert_same

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32()), ("x", pa.float64()), ("s", pa.string())])
ANY = [
    "SELECT k, MAX(v) AS a, MIN(x) AS b, SUM(x) AS c, VAR_SAMP(v) AS d, MAX(s) AS e "
    "FROM s [RANGE 40 SLIDE 2] GROUP BY k",
    "SELECT k, MAX(v) AS a, MIN(x) AS b, SUM(x) AS c, VAR_SAMP(v) AS d, MAX(s) AS e "
    "FROM s [RANGE 150 SLIDE 10] GROUP BY k",
    "SELECT MIN(v) AS a, AVG(x) AS b FROM s [RANGE 91 SLIDE 7]",
    "SELECT MIN(v) AS a, AVG(x) AS b FROM s [RANGE 30 SLIDE 1 OFFSET 20]",
    "SELECT MIN(s) AS a, STDDEV_POP(x) AS b FROM s [RANGE 3 SLIDE 12] WHERE v > 0",
]
SUBTRACTABLE = [
    "SELECT k, SUM(v) AS a, COUNT(x) AS b, COUNT(*) AS c FROM s [RANGE 40 SLIDE 2] GROUP BY k",
    "SELECT AVG(v) AS a FROM s [RANGE 91 SLIDE 7 OFFSET 5]",
]


def stream(rows: int, seed: int) -> pa.Table:
    """Some instants are crowded, some stretches are silent."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 400, rows))
    ts[ts > 250] += 120
    words = np.array(["ant", "bee", "cat", "dog", "éa", ""])
    columns = [
        pa.array(ts),
        pa.array(rng.integers(0, 7, rows), pa.int32()),
        pa.array(rng.integers(-1000, 1000, rows), pa.int32(), mask=rng.random(rows) < 0.1),
        pa.array(
            rng.choice([0.1, -3.0, 1e6, -1e6, 2.5, np.inf, np.nan], rows, p=[0.3, 0.3, 0.05, 0.05, 0.29, 0.005, 0.005])
        ),
        pa.array(rng.choice(words, rows), mask=rng.random(rows) < 0.1),
    ]
    return pa.table(columns, schema=SCHEMA)


@pytest.mark.parametrize("rows_per_push", [1000, 7])
@pytest.mark.parametrize("name", [None, "running", "basic_interval", "interval", "landmark"])
def test_every_synopsis_gives_the_answers_of_the_oracle(name: str | None, rows_per_push: int) -> None:
    table = stream(1000, seed=rows_per_push)
    db = windrow.connect(synopsis=name)
    db.stream("s", SCHEMA, time="t")
    queries = [db.query(text) for text in (SUBTRACTABLE if name == "running" else ANY + SUBTRACTABLE)]
    for start in range(0, len(table), rows_per_push):
        db.push("s", table.slice(start, rows_per_push))
    db.finish()
    for query in queries:
        assert_same(query.answers(), Reference(query.bound, {"s": table}).answers(), absolute=1e-9)


def test_a_wrong_pairing_is_refused_when_the_query_is_registered() -> None:
    db = windrow.connect(synopsis="running")
    db.stream("s", SCHEMA, time="t")
    kept = db.query("SELECT SUM(v) AS a FROM s [RANGE 10 SLIDE 5]", name="kept")
    with pytest.raises(windrow.UnsupportedError, match=r"MAX\(v\): a running synopsis subtracts .* with a maximum"):
        db.query("SELECT MAX(v) AS a FROM s [RANGE 10 SLIDE 5]")
    assert [query.name for query in db.queries()] == ["kept"]
    db.push("s", stream(50, seed=3))
    db.finish()
    assert kept.answers().num_rows


def test_an_unknown_synopsis_is_refused() -> None:
    with pytest.raises(windrow.SetupError, match="no synopsis 'tree'; the synopses are running, basic_interval"):
        windrow.connect(synopsis="tree")
