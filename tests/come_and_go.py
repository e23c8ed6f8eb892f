"""Queries that come and go while data flow, each compared with the reference from its beginning to its end."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

import windrow
from windrow.testing import Reference, assert_same, cut, shuffle_within


def check_queries_that_come_and_go(
    db: windrow.Database, table: pa.Table, texts: list[str], lateness: int, seed: int, data: st.DataObject
) -> None:
    """Push the table into stream s in six batches; between them queries are registered and dropped."""

    def check(query: windrow.Query, start: int | None, until: int | None) -> None:
        world = Reference(query.bound, {"s": table}, start=start, since=query.since, until=until)
        assert_same(query.answers(), world.answers(), absolute=1e-9)

    waiting, registered = list(texts), list[tuple[windrow.Query, int | None]]()
    for batch in cut(shuffle_within(table, "t", lateness, seed), seed, 6):
        while waiting and data.draw(st.booleans(), label="register one now"):
            registered.append((db.query(waiting.pop()), db.metrics()["streams"]["s"]["watermark"]))
        if len(registered) > 1 and data.draw(st.integers(0, 3), label="drop one at 0") == 0:
            query, start = registered.pop(data.draw(st.integers(0, len(registered) - 1)))
            until = db.metrics()["streams"]["s"]["watermark"]
            db.drop(query.name)
            if until is not None:  # what comes later is behind the watermark
                check(query, start, until)
        db.push("s", batch)
    until = None
    if len(table) and data.draw(st.booleans(), label="end with a heartbeat"):
        until = table["t"].to_pylist()[-1] + 37
        db.advance("s", until)
    else:
        db.finish()
    for query, start in registered:
        check(query, start, until)
