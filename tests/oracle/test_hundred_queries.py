"""A script of a hundred queries over one stream of packets, all together, against the reference one by one."""

from __future__ import annotations

import numpy as np

import windrow
from windrow.testing import Reference, assert_same, cut, packets, shuffle_within

DECLARATION = """
    CREATE STREAM packets (ts TIMESTAMP, src STRING, dst STRING, proto STRING, port INT, length INT)
    TIME ts LATENESS 2 SECONDS;
"""
SELECTS = [
    "SELECT SUM(length) AS bytes, COUNT(*) AS n FROM packets {w}",
    "SELECT src, SUM(length) AS bytes FROM packets {w} GROUP BY src",
    "SELECT proto, MAX(length) AS largest, MIN(length) AS smallest FROM packets {w} GROUP BY proto",
    "SELECT dst, COUNT(*) AS n FROM packets {w} GROUP BY dst HAVING COUNT(*) > 3",
    "SELECT src, dst, AVG(length) AS mean FROM packets {w} GROUP BY src, dst ORDER BY mean DESC LIMIT 5",
    "SELECT port, STDDEV_SAMP(length) AS spread FROM packets {w} WHERE proto = 'tcp' GROUP BY port",
    "SELECT proto, COUNT(*) FILTER (WHERE length > 1000) AS long, COUNT(port) AS p FROM packets {w} GROUP BY proto",
    "SELECT length // 500 AS class, COUNT(*) AS n, MAX(src) AS last FROM packets {w} WHERE port IS NOT NULL GROUP BY 1",
    "SELECT DISTINCT proto, port FROM packets {w}",
    "SELECT CASE WHEN port < 99 THEN 'low' ELSE 'high' END AS kind, SUM(length) AS v FROM packets {w} GROUP BY 1",
]


def script() -> str:
    """A hundred CREATE QUERY statements with random windows, seeded."""
    random = np.random.default_rng(240)
    statements = []
    for number in range(100):
        length, slide = int(random.integers(1, 40)), int(random.integers(3, 15))
        offset = f" OFFSET {int(random.integers(1, 9))} SECONDS" if number % 7 == 0 else ""
        window = f"[RANGE {length} SECONDS SLIDE {slide} SECONDS{offset}]"
        statements.append(f"CREATE QUERY q{number} AS {SELECTS[number % len(SELECTS)].format(w=window)};")
    return DECLARATION + "\n".join(statements)


def test_hundred_queries() -> None:
    table = packets(600, seed=8, rate=10, hosts=12, null_fraction=0.1)
    db = windrow.connect()
    db.execute(script())
    assert len(db.queries()) == 100
    for batch in cut(shuffle_within(table, "ts", 2_000_000, seed=3), seed=5, pieces=7):
        db.push("packets", batch)
    db.finish()
    metrics = db.metrics()["streams"]["packets"]
    assert (metrics["read"], metrics["late"]) == (600, 0)
    assert metrics["slices"] <= len(SELECTS)  # queries with the same predicate and grouping share their panes
    for query in db.queries():
        expected = Reference(query.bound, {"packets": table}).answers()
        assert_same(query.answers(), expected, ordered="ORDER BY" in query.text)
