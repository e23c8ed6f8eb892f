"""Invariant 2: answers do not change with batch cuts, arrival order within the lateness, or the synopsis type."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.random_queries import TICKS, queries, tables
from windrow.testing import assert_same, cut, shuffle_within


def run(texts: list[str], batches: list[pa.Table], lateness: int = 0, synopsis: str | None = None) -> list[pa.Table]:
    db = windrow.Database(synopsis=synopsis)
    db.stream("s", TICKS, time="t", lateness=lateness)
    handles = [db.query(text) for text in texts]
    for batch in batches:
        db.push("s", batch)
    db.finish()
    assert db.metrics()["streams"]["s"]["late"] == 0
    return [handle.answers() for handle in handles]


@given(tables(), st.lists(queries(), min_size=1, max_size=3), st.integers(0, 2**32), st.integers(1, 8))
def test_batch_cuts(table: pa.Table, texts: list[str], seed: int, pieces: int) -> None:
    whole = run(texts, [table])
    for ours, theirs in zip(run(texts, cut(table, seed, pieces)), whole, strict=True):
        assert_same(ours, theirs, absolute=1e-9)


@given(tables(), st.lists(queries(), min_size=1, max_size=3), st.integers(0, 2**32), st.integers(0, 20))
def test_arrival_order_within_the_lateness(table: pa.Table, texts: list[str], seed: int, lateness: int) -> None:
    shuffled = shuffle_within(table, "t", lateness, seed)
    whole = run(texts, [table])
    for ours, theirs in zip(run(texts, cut(shuffled, seed, 5), lateness), whole, strict=True):
        assert_same(ours, theirs, absolute=1e-9)


@given(
    tables(),
    st.lists(queries(), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.sampled_from(["basic_interval", "interval", "landmark"]),
)
def test_synopsis_type(table: pa.Table, texts: list[str], seed: int, name: str) -> None:
    chosen = run(texts, cut(table, seed, 3))
    for ours, theirs in zip(run(texts, cut(table, seed, 3), synopsis=name), chosen, strict=True):
        assert_same(ours, theirs, absolute=1e-9)


@given(tables(), st.lists(queries(), min_size=2, max_size=5))
def test_a_query_alone_and_among_others(table: pa.Table, texts: list[str]) -> None:
    together = run(texts, [table])
    for text, shared in zip(texts, together, strict=True):
        assert_same(run([text], [table])[0], shared, absolute=1e-9)
