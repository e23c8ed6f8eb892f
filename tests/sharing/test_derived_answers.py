"""Under sharing every query has the answers that it would have alone, whoever comes and goes."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from tests.come_and_go import check_queries_that_come_and_go
from tests.engine.test_slicing_elsewhere import absorb
from tests.random_queries import TICKS, tables
from tests.sharing.overlapping import overlapping
from windrow.testing import assert_same, cut

TEXTS = overlapping()


def database(lateness: int = 0, deriving: str = "always") -> windrow.Database:
    db = windrow.connect()
    db._engine.deriving = deriving  # type: ignore[assignment]
    db.stream("s", TICKS, time="t", lateness=lateness)
    return db


@settings(max_examples=2 * settings().max_examples)
@given(tables(), TEXTS, st.integers(0, 2**32), st.sampled_from([0, 0, 4, 30]), st.data())
def test_against_the_reference(
    table: pa.Table, texts: list[str], seed: int, lateness: int, data: st.DataObject
) -> None:
    check_queries_that_come_and_go(database(lateness), table, texts, lateness, seed, data)


@given(tables(), TEXTS, st.integers(0, 2**32), st.booleans(), st.booleans(), st.data())
def test_as_each_query_alone(
    table: pa.Table, texts: list[str], seed: int, elsewhere: bool, restored: bool, data: st.DataObject
) -> None:
    """Pushed or sliced elsewhere, and across a snapshot; queries go now and then."""
    shared = database()
    alone = {name: database(deriving="never") for name in map(str, range(len(texts)))}
    for name, text in zip(alone, texts, strict=True):
        shared.query(text, name=name)
        alone[name].query(text, name=name)
    gone: set[str] = set()
    so_far = {name: TICKS.empty_table().select([]) for name in alone}

    def answers_of(name: str) -> pa.Table:
        now = shared._registry.find(name, windrow.Query).answers()
        return pa.concat_tables([so_far[name], now]) if so_far[name].num_columns else now

    for number, piece in enumerate(cut(table, seed, 4)):
        if data.draw(st.integers(0, 2)) == 0 and len(gone) < len(texts) - 1:
            name = data.draw(st.sampled_from(sorted(alone.keys() - gone)))
            gone.add(name)
            assert_same(answers_of(name), alone[name].queries()[0].answers(), absolute=1e-9)
            shared.drop(name)
        if restored and number == 2:
            saved = [query for query in shared.queries() if query.status == "running"]
            so_far = {query.name: query.answers() for query in saved}
            gone |= alone.keys() - so_far.keys()
            meta, blobs = shared._engine.snapshot()
            shared = database()
            for query in reversed(saved):  # in another order, so that others would be derived
                shared.query(query.text, name=query.name)
            shared._engine.restore(meta, blobs)
        with suppress(windrow.QueryError):
            if elsewhere:
                absorb(shared._engine, "s", cut(piece, seed + number, 2))
            else:
                shared.push("s", piece)
        for name in alone.keys() - gone:
            with suppress(windrow.QueryError):
                alone[name].push("s", piece)
    shared.finish()
    for query in shared.queries():
        other = alone[query.name]
        with suppress(windrow.QueryError):
            other.finish()
        assert_same(answers_of(query.name), other.queries()[0].answers(), absolute=1e-9)
        assert query.status == other.queries()[0].status
