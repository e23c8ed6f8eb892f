"""Why some queries are refused: dealt all the same, their shards answer something else than one place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from tests.shards.harness import SideBySide
from windrow.flow.flow import Flow
from windrow.shards.dealing import OF_NULL, deal
from windrow.shards.keys import ShardKey, shard_key

HOMES = deal(pa.array(range(9)), 2).tolist()
ZERO, ONE = HOMES.index(0), HOMES.index(1)
"""Keys of different shards."""
AWAY = ONE if OF_NULL == 0 else ZERO
"""A key that is not in the shard of NULL."""
LAST = "SELECT a FROM (RSTREAM(SELECT a FROM p [RANGE 10 SLIDE 10]))"
ENDS = [(10, ZERO), (11, ONE)]
"""Only the second is in the subquery's last answer, at 20, after the end at 11."""
NOT_IN = "SELECT a FROM p [RANGE 5] WHERE a NOT IN (SELECT a FROM q [RANGE 5])"
LEFT = "SELECT x.a, y.a AS b FROM p [RANGE 5] AS x LEFT JOIN q [RANGE 5] AS y ON x.a <> y.a"


def played(text: str, p: list[tuple[int, int | None]], q: list[tuple[int, int | None]], *, forced: bool) -> int:
    """The rows of one place, if two shards answer the same; `forced`: by the column a, though that is refused."""
    db = windrow.connect()
    db.execute("CREATE STREAM p (t BIGINT, a BIGINT) TIME t; CREATE STREAM q (t BIGINT, a BIGINT) TIME t")
    query = db.query(text)
    flow = query.running.flow
    key = shard_key(flow.query, flow.plan)
    assert isinstance(key, str) == forced, key
    if isinstance(key, str):
        key = ShardKey({"p": "a", "q": "a"}, False)
    shards = [Flow(flow.query, flow.plan, db._engine._compiled.compiler) for _ in range(2)]
    both = query.running.flow = SideBySide(flow, key, shards)
    for name, rows in (("p", p), ("q", q)):
        if rows:
            times, values = zip(*rows, strict=True)
            db.push(name, pa.table({"t": pa.array(times), "a": pa.array(values, pa.int64())}))
    db.finish()
    return both.answered


@pytest.mark.parametrize(
    ("text", "p", "q", "when"),
    [
        (f"{LAST} [RANGE 3]", ENDS, [], 13),
        (NOT_IN, [(1, AWAY)], [(1, None)], 1),
        (LEFT, [(1, ZERO)], [(1, ONE)], 1),
    ],
    ids=["a shard ends earlier", "a NULL elsewhere", "a match elsewhere"],
)
def test_shards_would_answer_something_else(
    text: str, p: list[tuple[int, int | None]], q: list[tuple[int, int | None]], when: int
) -> None:
    with pytest.raises(AssertionError, match=f"answers differ at _time {when} "):
        played(text, p, q, forced=True)


@pytest.mark.parametrize("window", ["[RANGE 3 SLIDE 10]", "[RANGE 15 SLIDE 20]"])
def test_a_multiple_of_the_inner_slide_ends_everywhere_at_once(window: str) -> None:
    assert played(f"{LAST} {window}", ENDS, [], forced=False) > 0
