"""The demo's script: all of it is good, it shares, and its answers are those of the reference."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.serving.check import checked
from windrow.serving.packets import write_packets
from windrow.serving.questions import QUESTIONS, demo_queries, script
from windrow.serving.script import load, split
from windrow.testing import Reference, assert_same


def test_all_240_queries_pass_the_check() -> None:
    db = windrow.connect()
    loaded = load(db, script(None, demo_queries(240)), "demo.cql")
    assert loaded.faults == []
    result = checked(db, loaded)
    assert (result.streams, result.queries) == (1, 240)
    assert len(QUESTIONS) <= 20 and result.share_groups < len(QUESTIONS)


def test_names_are_different_however_many_queries() -> None:
    names = {one.name for one in demo_queries(2_000)}
    assert len(names) == 2_000


def test_a_small_demo_asks_every_question() -> None:
    assert [one.question for one in demo_queries(len(QUESTIONS))] == list(QUESTIONS)


def test_the_script_reads_like_a_script() -> None:
    text = script("build/it's/packets", demo_queries(32))
    assert text.startswith("-- Simulated IP packets")
    assert "USING parquet OPTIONS (path 'build/it''s/packets', maxFilesPerTrigger 2);" in text
    assert max(map(len, text.splitlines())) <= 110
    assert len(split(text)) == 33


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[windrow.Database, pa.Table]:
    path = tmp_path_factory.mktemp("packets")
    write_packets(path, 10_000, 4)
    db = windrow.connect()
    assert not load(db, script(None, demo_queries(len(QUESTIONS) * 2)), "demo.cql").faults
    tables = [pq.read_table(one) for one in sorted(path.iterdir())]
    for table in tables:
        db.push("packets", table)
    db.finish()
    return db, pa.concat_tables(tables)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.name)
def test_answers_are_those_of_the_reference(answered: tuple[windrow.Database, pa.Table], question) -> None:  # type: ignore[no-untyped-def]
    db, table = answered
    query = next(one for one in db.queries() if one.name == f"{question.name}_10s_1s")
    expected = Reference(query.bound, {"packets": table}).answers()
    assert expected.num_rows, "an answer without rows proves nothing"
    assert_same(query.answers(), expected, ordered="ORDER BY" in query.text)
    assert db.metrics()["streams"]["packets"]["late"] == 0
