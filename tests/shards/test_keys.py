"""By which columns the tuples of hand-written queries are dealt, and why some stay in one place."""

from __future__ import annotations

import pytest

import windrow
from windrow.language.binder import bind
from windrow.optimizer.rules import optimize
from windrow.plan.build import build
from windrow.shards.keys import ShardKey, shard_key

COLUMNS = (
    "(t BIGINT, a INT, b BIGINT, s STRING, d DOUBLE, f FLOAT, e DECIMAL(9, 2), g DECIMAL(20, 2), y BOOLEAN) TIME t"
)


@pytest.fixture(scope="module")
def db() -> windrow.Database:
    db = windrow.connect()
    for name in ("p", "q", "r"):
        db.execute(f"CREATE STREAM {name} {COLUMNS}")
    db.execute("CREATE RELATION names (a INT, b BIGINT, s STRING)")
    db.execute("CREATE RELATION prices (id BIGINT, a INT, b BIGINT) KEY (id) NON RETROACTIVE")
    return db


PQ = "FROM p [RANGE 5] AS x, q [RANGE 9] AS z"
KEYS = [
    # one stream
    ("SELECT a, b FROM p [RANGE 5]", {"p": "a"}),
    ("SELECT b + 1 AS c FROM p [RANGE 5] WHERE b > 0", {"p": "b"}),
    ("SELECT y, t, s FROM p [RANGE 5]", {"p": "s"}),  # neither a BOOLEAN nor the time if there is another
    ("SELECT y, t FROM p [RANGE 5]", {"p": "t"}),
    ("SELECT DISTINCT a FROM p [RANGE 5]", {"p": "a"}),
    ("SELECT s, COUNT(*) AS n FROM p [RANGE 5] GROUP BY s", {"p": "s"}),
    ("SELECT COUNT(*) AS n FROM p [RANGE 5] GROUP BY s", {"p": "s"}),
    ("SELECT s, b % 2 AS odd, MAX(a) AS m FROM p [RANGE 5] GROUP BY b % 2, s", {"p": "s"}),
    ("SELECT a FROM p [PARTITION BY s ROWS 3]", {"p": "s"}),
    ("SELECT s, a FROM p [PARTITION BY a, s ROWS 3 OFFSET 1]", {"p": "a"}),
    # joins
    (f"SELECT x.s {PQ} WHERE x.a = z.b", {"p": "a", "q": "b"}),
    (f"SELECT x.s {PQ} WHERE x.a = z.b AND x.s = z.s", {"p": "s", "q": "s"}),  # the one that is in the output
    (f"SELECT x.a {PQ} WHERE x.e = z.g", {"p": "e", "q": "g"}),
    (f"SELECT x.a {PQ} WHERE x.d = z.d", {"p": "d", "q": "d"}),
    ("SELECT x.a FROM p [RANGE 5] AS x JOIN q [RANGE 9] AS z USING (s)", {"p": "s", "q": "s"}),
    ("SELECT x.t FROM p AS x, q AS y, r AS z WHERE x.a = y.b AND y.b = z.a", {"p": "a", "q": "b", "r": "a"}),
    ("SELECT x.t FROM p AS x, q AS y, r AS z WHERE x.a = z.a AND z.a = y.b", {"p": "a", "q": "b", "r": "a"}),
    (
        "SELECT x.t FROM p AS x, q AS y, r AS z WHERE x.a = z.a AND z.b = y.b AND z.a = z.b",
        {"p": "a", "q": "b", "r": "a"},
    ),
    ("SELECT x.t FROM p AS x, names AS n, q AS y WHERE x.a = n.a AND n.a = y.b", {"p": "a", "q": "b"}),
    ("SELECT x.t FROM p [RANGE 5] AS x, p [RANGE 9] AS y WHERE x.s = y.s", {"p": "s"}),
    ("SELECT x.t FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a = y.a AND x.b < y.b", {"p": "a", "q": "a"}),
    ("ISTREAM(SELECT x.a FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a = y.b)", {"p": "a", "q": "b"}),
    ("ISTREAM(SELECT y.b FROM p [RANGE 5] AS x RIGHT JOIN q [RANGE 5] AS y ON x.a = y.b)", {"p": "a", "q": "b"}),
    ("SELECT x.a, y.a FROM p [RANGE 5] AS x FULL JOIN q [RANGE 5] AS y ON x.a = y.a", {"p": "a", "q": "a"}),
    # relations
    ("SELECT x.b FROM p [RANGE 5] AS x, names AS n WHERE x.a < n.a", {"p": "b"}),
    ("SELECT DISTINCT n.s FROM p [RANGE 5] AS x, names AS n WHERE x.s = n.s", {"p": "s"}),
    ("SELECT x.a, n.b FROM p [RANGE 5] AS x LEFT JOIN names AS n ON x.a = n.a", {"p": "a"}),
    ("SELECT x.a, n.b FROM names AS n RIGHT JOIN p [RANGE 5] AS x ON x.a = n.a", {"p": "a"}),
    ("SELECT x.a, n.b FROM p [RANGE 5] AS x, prices AS n WHERE x.a = n.a", {"p": "a"}),
    ("SELECT a FROM p [RANGE 5] WHERE b NOT IN (SELECT b FROM names)", {"p": "a"}),
    ("SELECT a FROM p [RANGE 5] EXCEPT SELECT a FROM names", {"p": "a"}),
    # subqueries
    ("SELECT b FROM p [RANGE 5] AS x WHERE EXISTS (SELECT * FROM q AS y WHERE y.s = x.s)", {"p": "s", "q": "s"}),
    ("SELECT b FROM p [RANGE 5] AS x WHERE NOT EXISTS (SELECT * FROM q AS y WHERE x.a = y.b)", {"p": "a", "q": "b"}),
    ("SELECT s FROM p [RANGE 5] AS x WHERE a IN (SELECT b FROM q [RANGE 5])", {"p": "a", "q": "b"}),
    ("SELECT s FROM p [RANGE 5] AS x WHERE a IN (SELECT DISTINCT b FROM q [RANGE 5])", {"p": "a", "q": "b"}),
    (
        "SELECT s FROM p [RANGE 5] AS x WHERE a NOT IN (SELECT y.b FROM q [RANGE 5] AS y WHERE y.s = x.s)",
        {"p": "s", "q": "s"},
    ),
    ("SELECT z.c FROM (SELECT a AS c, b FROM p [RANGE 5]) AS z, q AS w WHERE z.c = w.b", {"p": "a", "q": "b"}),
    (
        "SELECT z.c, COUNT(*) AS n FROM (ISTREAM(SELECT a AS c, b FROM p [RANGE 5])) [RANGE 9] AS z GROUP BY z.c",
        {"p": "a"},
    ),
    # sets
    ("SELECT a FROM p [RANGE 5] UNION ALL SELECT b FROM q [RANGE 5]", {"p": "a", "q": "b"}),
    ("SELECT s, a FROM p [RANGE 5] UNION ALL SELECT s, d FROM q [RANGE 5]", {"p": "s", "q": "s"}),
    ("SELECT a + 1 AS c FROM p [RANGE 5] UNION ALL SELECT d FROM q [RANGE 5]", {"p": "a", "q": "d"}),
    ("SELECT a, s FROM p [RANGE 5] EXCEPT SELECT d, s FROM q [RANGE 5]", {"p": "s", "q": "s"}),
    ("SELECT a FROM p [RANGE 5] INTERSECT ALL SELECT b FROM q [RANGE 5]", {"p": "a", "q": "b"}),
    # output
    ("RSTREAM(SELECT b + 1 AS c FROM p [RANGE 5 SLIDE 2])", {"p": "b"}),
    ("ISTREAM(SELECT s, b + 1 AS c FROM p [RANGE 5])", {"p": "s"}),
    ("ISTREAM(SELECT b + 1 AS c FROM p)", {"p": "b"}),  # nothing is ever taken back
    ("SELECT a, b + 1 AS c FROM p [RANGE 5 INTERNAL]", {"p": "a"}),
    ("WSTREAM(SELECT a, b + 1 AS c FROM p [RANGE 5]) [RANGE 3]", {"p": "a"}),
    ("ISTREAM_RESTORE(SELECT a, b + 1 AS c FROM p [RANGE 5 SLIDE 2])", {"p": "a"}),
    (
        "SELECT z.a FROM (RSTREAM(SELECT a FROM p [RANGE 5 SLIDE 2])) [RANGE 4 SLIDE 6] AS z, q [RANGE 4 SLIDE 6] AS w "
        "WHERE z.a = w.a",
        {"p": "a", "q": "a"},
    ),
]
REASONS = [
    ("SELECT COUNT(*) AS n FROM p [RANGE 5]", "aggregates without GROUP BY"),
    ("SELECT DISTINCT a + 1 AS c FROM p [RANGE 5]", "DISTINCT compares rows that do not have the key"),
    ("SELECT COUNT(*) AS n FROM p [RANGE 5] GROUP BY a % 2", "GROUP BY has no plain column"),
    ("SELECT f FROM p [RANGE 5]", "no column of p that it names has a type that deals"),
    ("SELECT a FROM p [ROWS 5]", "counts rows without PARTITION BY"),
    ("SELECT a FROM p [ROWS 5 SLIDE 2]", "slides by rows"),
    (f"SELECT x.a {PQ}", "ties x to z"),
    (f"SELECT x.a {PQ} WHERE x.a < z.a", "no equality of two columns of one type"),
    (f"SELECT x.a {PQ} WHERE x.a + 1 = z.b", "ties x to z"),
    (f"SELECT x.a {PQ} WHERE x.a = z.d", "ties x to z"),
    (f"SELECT x.a {PQ} WHERE x.f = z.f", "no column of z that it names"),
    (f"SELECT x.a {PQ} WHERE x.e = z.a", "ties x to z"),
    (f"SELECT x.a {PQ} WHERE x.a = z.a OR x.b = z.b", "ties x to z"),
    (f"SELECT DISTINCT x.s {PQ} WHERE x.a = z.a", "DISTINCT"),
    (f"SELECT x.s, COUNT(*) AS n {PQ} WHERE x.a = z.a GROUP BY x.s", "GROUP BY has no plain column that is the key"),
    ("SELECT x.t FROM p AS x, q AS y, r AS z WHERE x.a = y.a AND y.b = z.b", "ties x, y to z"),
    ("SELECT x.t FROM p [RANGE 5] AS x, p [RANGE 9] AS y WHERE x.a = y.b", "ties x to y"),
    ("SELECT x.t FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a < y.a", "ties x to y"),
    ("ISTREAM(SELECT y.a FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a = y.a)", "ISTREAM compares rows"),
    ("SELECT DISTINCT x.a, y.a FROM p [RANGE 5] AS x FULL JOIN q [RANGE 5] AS y ON x.a = y.a", "DISTINCT"),
    (
        "SELECT x.a, n.b FROM p [RANGE 5] AS x RIGHT JOIN names AS n ON x.a = n.a",
        "a RIGHT JOIN keeps rows of a relation",
    ),
    ("SELECT x.a, n.b FROM p [RANGE 5] AS x FULL JOIN names AS n ON x.a = n.a", "a FULL JOIN keeps rows of a relation"),
    ("SELECT x.a, n.b FROM names AS n LEFT JOIN p [RANGE 5] AS x ON x.a = n.a", "a LEFT JOIN keeps rows of a relation"),
    ("SELECT a FROM p [RANGE 5] WHERE a NOT IN (SELECT a FROM q [RANGE 5])", "a NULL in the subquery of NOT IN"),
    (
        "SELECT a FROM p [RANGE 5] WHERE EXISTS (SELECT * FROM q [RANGE 5])",
        "EXISTS is tied to its subquery by no equality",
    ),
    ("SELECT a FROM p [RANGE 5] AS x WHERE EXISTS (SELECT * FROM q AS y WHERE y.a > x.a)", "EXISTS is tied"),
    ("SELECT a FROM p [RANGE 5] AS x WHERE d IN (SELECT a FROM q [RANGE 5])", "IN is tied"),
    ("SELECT a FROM names WHERE a IN (SELECT a FROM q [RANGE 5])", "IN tests rows of relations alone"),
    ("SELECT a FROM names EXCEPT SELECT a FROM p [RANGE 5]", "EXCEPT gives rows of relations alone"),
    ("SELECT a FROM names UNION ALL SELECT a FROM p [RANGE 5]", "UNION with rows of relations alone"),
    ("SELECT a FROM p [RANGE 5] EXCEPT SELECT d FROM q [RANGE 5]", "EXCEPT compares rows"),
    ("SELECT a, b FROM p [RANGE 5] INTERSECT SELECT b, a FROM p [RANGE 5]", "INTERSECT compares rows"),
    ("SELECT a + 1 AS c FROM p [RANGE 5] UNION SELECT a FROM q [RANGE 5]", "DISTINCT"),
    ("SELECT a FROM p [RANGE 5] ORDER BY a LIMIT 3", "ORDER BY and LIMIT look at all rows"),
    (
        "SELECT a, COUNT(*) AS n FROM (ISTREAM(SELECT a FROM p [RANGE 5])) [ROWS 9] GROUP BY a",
        "counts rows of a subquery",
    ),
    ("SELECT c FROM (ISTREAM(SELECT a + 1 AS c FROM p [RANGE 5])) [RANGE 9]", "ISTREAM compares rows"),
    ("SELECT a FROM (RSTREAM(SELECT a FROM p [RANGE 5 SLIDE 4])) [RANGE 9]", "may come after the end of its streams"),
    ("SELECT a FROM (RSTREAM(SELECT a FROM p [RANGE 5 SLIDE 4])) [RANGE 9 SLIDE 6]", "only a SLIDE of 4 ticks"),
    ("ISTREAM(SELECT b + 1 AS c FROM p [RANGE 5])", "ISTREAM compares rows"),
    ("DSTREAM(SELECT b + 1 AS c FROM p [RANGE 5 SLIDE 2])", "DSTREAM compares rows"),
    ("RSTREAM(SELECT a FROM p [RANGE 5])", "RSTREAM without SLIDE"),
    ("RSTREAM_RESTORE(SELECT a + 1 AS c FROM p [RANGE 5 SLIDE 2])", "RSTREAM_RESTORE compares rows"),
    ("SELECT b + 1 AS c FROM p [RANGE 5 INTERNAL]", "an INTERNAL window compares rows"),
    ("SELECT x.b + 1 AS c FROM p [RANGE 5 INTERNAL] AS x, q [RANGE 9] AS y WHERE x.a = y.a", "an INTERNAL window"),
    ("WSTREAM(SELECT a FROM p [RANGE 5]) [ROWS 3]", "the window of WSTREAM counts the rows of all keys"),
]


def keys(db: windrow.Database, text: str) -> list[ShardKey | str]:
    """Of the plan as it is written, and as it is optimized."""
    query = bind(text, db.catalog)
    plan = build(query)
    return [shard_key(query, plan), shard_key(query, optimize(plan))]


@pytest.mark.parametrize(("text", "columns"), KEYS, ids=[text for text, _ in KEYS])
def test_the_key(db: windrow.Database, text: str, columns: dict[str, str]) -> None:
    for key in keys(db, text):
        assert isinstance(key, ShardKey), key
        assert key.columns == columns


@pytest.mark.parametrize(("text", "reason"), REASONS, ids=[text for text, _ in REASONS])
def test_the_reason(db: windrow.Database, text: str, reason: str) -> None:
    for key in keys(db, text):
        assert isinstance(key, str), key
        assert reason in key


def test_a_key_says_what_it_deals(db: windrow.Database) -> None:
    text = "SELECT x.a FROM p [RANGE 5] AS x, q [RANGE 5] AS y, p [RANGE 9] AS z WHERE x.a = y.b AND z.a = y.b"
    key = keys(db, text)[0]
    assert isinstance(key, ShardKey)
    assert str(key) == "p.a, q.b"
    assert key.apart


def test_equal_rows_may_come_from_two_shards_if_the_key_is_not_shown(db: windrow.Database) -> None:
    key = keys(db, "SELECT b + 1 AS c FROM p [RANGE 5]")[0]
    assert isinstance(key, ShardKey)
    assert not key.apart


def test_wide_unions_are_looked_at_in_bounded_time(db: windrow.Database) -> None:
    side = "SELECT t + a + b + d + LENGTH(s) AS c FROM {} [RANGE 5]"
    for key in keys(db, " UNION ALL ".join(side.format(name) for name in "pqr" for _ in range(3))):
        assert isinstance(key, ShardKey)
        assert set(key.columns) == {"p", "q", "r"}
