"""Continuous queries through Spark: joins, negation, relations and ROWS windows give the answers of the reference."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import Observation, SparkSession

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from tests.pipeline.files import write_files
from windrow.pipeline.pushdown import common_filter, narrow
from windrow.pipeline.sources import open_source
from windrow.testing import Reference, RelationUpdate, assert_same, cut

EXAMPLES = settings(max_examples=max(8, int(os.environ.get("WINDROW_EXAMPLES", "0")) // 10))
"""Each example is a run of Spark's: a second or so."""


def table_of(rows: int, per_tick: int, keys: int) -> pa.Table:
    """A stream of p's and q's columns."""
    return pa.table(
        {
            "t": pa.array([i // per_tick for i in range(rows)], pa.int64()),
            "a": pa.array([None if i % 17 == 0 else i * 7 % keys for i in range(rows)], pa.int32()),
            "b": pa.array([i * i % 23 for i in range(rows)], pa.int64()),
            "s": pa.array(["xyz"[i * 5 % 3] for i in range(rows)]),
        }
    )


TABLES = {"p": table_of(150, 3, 6), "q": table_of(60, 1, 9)}
"""p has 50 instants, q has 60: neither ends with the other."""
NAMES = pa.table({"a": pa.array([0, 1, 2, 3], pa.int32()), "name": ["zero", "one", "two", "three"]})
QUERIES = {
    "joined": "SELECT x.a, x.b, y.s FROM p [RANGE 9] AS x, q [RANGE 14] AS y WHERE x.a = y.a AND x.s = 'x'",
    "unmatched": "SELECT x.a, x.b FROM p [RANGE 8] AS x WHERE NOT EXISTS "
    "(SELECT * FROM q [RANGE 20] AS y WHERE y.a = x.a AND y.b > 4)",
    "seen": "SELECT DISTINCT a FROM p [RANGE 10] WHERE b > 3",
    "only_p": "SELECT a FROM p [RANGE 7] EXCEPT SELECT a FROM q [RANGE 7]",
    "counts": "SELECT x.s, COUNT(*) AS n, SUM(y.b) AS v FROM p [RANGE 9 SLIDE 4] AS x, q [RANGE 9 SLIDE 4] AS y "
    "WHERE x.a = y.a GROUP BY x.s",
    "live_counts": "SELECT s, COUNT(*) AS n, MAX(b) AS m FROM p [RANGE 6] GROUP BY s",
    "last_rows": "SELECT a, b FROM p [ROWS 5] WHERE b > 2",
    "last_of_each": "SELECT x.a, y.b FROM p [PARTITION BY a ROWS 2] AS x, q [RANGE 5] AS y WHERE x.a = y.a",
    "named": "SELECT x.b, n.name FROM p [RANGE 8] AS x, names AS n WHERE x.a = n.a",
    "panes": "SELECT s, SUM(b) AS v FROM p [RANGE 10 SLIDE 5] GROUP BY s",
}


def database(spark: SparkSession, path: Path, options: str = "", names: pa.Table | None = NAMES) -> windrow.Database:
    """Streams p and q in files, and the relation names, which is filled here unless it has a source."""
    db = windrow.connect(spark=spark)
    for name in TABLES:
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS} USING parquet OPTIONS (path '{path / name}'{options})")
    db.execute("CREATE RELATION names (a INT, name STRING) KEY (a)")
    if names is not None:
        db.update("names", insert=names, time=-100)
    return db


def write(path: Path, pieces: dict[str, int], seed: int = 1) -> None:
    """So many files per stream."""
    for name, count in pieces.items():
        write_files(path / name, cut(TABLES[name], seed, count))


def expected(query: windrow.Query, relations: Any = None) -> pa.Table:
    """What the reference says."""
    return Reference(query.bound, TABLES, {"names": NAMES} if relations is None else relations).answers()


def check(db: windrow.Database) -> None:
    """All answers are those of the reference, and there are some."""
    for query in db.queries():
        assert query.status == "running", query.error
        assert query.answers().num_rows
        assert_same(query.answers(), expected(query), absolute=1e-9)


@pytest.mark.parametrize("options", [", scan 'arrow'", ", scan 'rows'", ", maxFilesPerTrigger '1'"])
@pytest.mark.parametrize("files", [{"p": 1, "q": 1}, {"p": 5, "q": 2}])
def test_every_kind_of_query(spark: SparkSession, tmp_path: Path, options: str, files: dict[str, int]) -> None:
    write(tmp_path, files)
    db = database(spark, tmp_path, options)
    for name, text in QUERIES.items():
        db.query(text, name=name)
    summary = db.run()
    check(db)
    assert summary.ended and summary.progress.rows == sum(table.num_rows for table in TABLES.values())
    assert summary.progress.answers == sum(query.answers().num_rows for query in db.queries())


@EXAMPLES
@given(
    text=flows(),
    tables=streams(),
    seed=st.integers(0, 2**32),
    files=st.integers(1, 4),
    scan=st.sampled_from(["arrow", "rows"]),
    strategy=st.sampled_from(["upa", "nt", "direct"]),
    shards=st.sampled_from([0, 0, 2]),
)
def test_random_queries_on_random_files(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    tables: dict[str, pa.Table],
    seed: int,
    files: int,
    scan: str,
    strategy: str,
    shards: int,
) -> None:
    path = tmp_path_factory.mktemp("streams")
    db = windrow.connect(spark=spark)
    for name in STREAMS:
        options = f"path '{path / name}', scan '{scan}', maxFilesPerTrigger '{1 + seed % 2}'"
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS} USING parquet OPTIONS ({options})")
    try:
        query = db.query(text, strategy=strategy)
    except windrow.Error:
        assume(False)
        raise
    for name, table in tables.items():
        write_files(path / name, cut(table, seed, files))
    db.run(shards=shards)
    assert query.status == "running"
    assert_same(query.answers(), Reference(query.bound, tables).answers(), absolute=1e-9)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_relation_from_a_source_and_its_updates(spark: SparkSession, tmp_path: Path, form: str) -> None:
    write(tmp_path, {"p": 3, "q": 1})
    place = tmp_path / f"names.{form}"
    if form == "csv":
        pacsv.write_csv(NAMES, place)
    else:
        pq.write_table(NAMES, place)
    db = windrow.connect(spark=spark)
    db.execute(f"CREATE STREAM p {SQL_COLUMNS} USING parquet OPTIONS (path '{tmp_path / 'p'}')")
    header = ", header 'true'" if form == "csv" else ""
    db.execute(f"CREATE RELATION names (a INT, name STRING) KEY (a) USING {form} OPTIONS (path '{place}'{header})")
    query = db.query(QUERIES["named"])
    db.update("names", insert=[{"a": 4, "name": "four"}], delete=[{"a": 1}], time=20)
    db.run()
    updates = [RelationUpdate(-(10**9), "+", row) for row in NAMES.to_pylist()]
    updates += [RelationUpdate(20, "+", {"a": 4, "name": "four"}), RelationUpdate(20, "-", {"a": 1})]
    assert_same(query.answers(), expected(query, {"names": updates}))


def test_changes_in_files(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {"p": 4, "q": 2})
    db = database(spark, tmp_path, ", maxFilesPerTrigger '1'")
    db.query(QUERIES["joined"], name="plain")
    for form in ("csv", "json"):
        db.execute(f"CREATE QUERY {form}_out INTO {form} OPTIONS (path '{tmp_path / form}') AS {QUERIES['joined']}")
    summary = db.run(output=tmp_path / "out")
    wanted = expected(db.queries()[0])
    assert set(wanted["_change"].to_pylist()) == {"+", "-"}
    assert summary.progress.answers == 3 * wanted.num_rows
    assert_same(ds.dataset(tmp_path / "out" / "plain", format="parquet").to_table(), wanted)
    schema = ", ".join(f"{field.name} {'string' if field.type == pa.string() else 'bigint'}" for field in wanted.schema)
    for found in (
        spark.read.schema(schema).json(str(tmp_path / "json")),
        spark.read.schema(schema).option("header", "true").csv(str(tmp_path / "csv")),
    ):
        assert_same(found.toArrow().cast(wanted.schema), wanted)


@pytest.mark.parametrize("shards", [0, 3])
def test_answers_can_be_taken_and_viewed(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    write(tmp_path, {"p": 4, "q": 2})
    db = database(spark, tmp_path, ", maxFilesPerTrigger '1'")
    counts = db.query(QUERIES["counts"], name="counts")
    joined = db.query(QUERIES["joined"], name="joined")
    assert db.sql_view("counts").count() == 0
    db.run(finish=False, shards=shards)
    taken = [joined.take()]
    one_more = pa.table({**TABLES["q"].slice(0, 1).to_pydict(), "t": [70]}, TABLES["q"].schema)
    write_files(tmp_path / "q", [one_more], first=90)
    before = counts.answers()["_time"].to_pylist()[-1]
    assert {row["_time"] for row in spark.sql("SELECT * FROM counts").collect()} <= {before}
    db.run()
    taken.append(joined.take())
    wanted = Reference(joined.bound, {**TABLES, "q": pa.concat_tables([TABLES["q"], one_more])}).answers()
    assert all(one.num_rows for one in taken)
    assert_same(pa.concat_tables(taken), wanted)
    assert db.sql_view(joined).schema.fieldNames() == ["_time", "_change", "a", "b", "s"]


def test_spark_filters_what_no_window_can_use(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"p": 2, "q": 1})
    db = database(spark, tmp_path, ", scan 'rows'")
    query = db.query("SELECT x.a FROM p [RANGE 9] AS x, q [RANGE 9] AS y WHERE x.a = y.a AND x.s = 'x' AND y.b > 9")
    counted = db.query("SELECT COUNT(*) AS n FROM p [RANGE 5] WHERE s = 'y' AND a = 2")
    kept = {name: common_filter([], db._engine.flows.kept_rows(name)) for name in TABLES}
    assert kept == {
        "p": "coalesce((`s` = 'x'), true) OR coalesce(((`s` = 'y') AND (`a` = 2)), true)",
        "q": "coalesce((`b` > 9), true)",
    }
    stream = query.bound.streams[0]
    source = open_source(spark, stream, spark.read.parquet(str(tmp_path / "p")))
    frame = narrow(source.frame, stream, db._engine.job("p").columns, kept["p"], 0, Observation("plan"))
    frame.mapInArrow(lambda batches: batches, frame.schema).explain()
    plan = capsys.readouterr().out
    assert "ReadSchema: struct<t:bigint,a:int,s:string>" in plan
    nodes = [plan.index(node) for node in ("MapInArrow", "Filter (", "CollectMetrics plan", "FileScan parquet")]
    assert nodes == sorted(nodes)
    summary = db.run()
    check(db)
    assert summary.progress.rows == 210
    assert counted.answers()["_time"].to_pylist()[0] == 0  # with the first tuple, which is filtered out


@pytest.mark.parametrize("shards", [0, 2])
def test_a_relation_is_updated_while_a_run_goes_on(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    """The update is in the checkpoint: a new process goes on with it."""

    def declared() -> windrow.Database:
        db = windrow.connect(spark=spark)
        options = f"path '{tmp_path / 'p'}', maxFilesPerTrigger '1'"
        db.execute(f"CREATE STREAM p {SQL_COLUMNS} USING parquet OPTIONS ({options})")
        db.execute("CREATE RELATION names (a INT, name STRING) KEY (a)")
        db.update("names", insert=NAMES, time=-100)
        db.query(QUERIES["named"], name="named", strategy="nt")
        return db

    write_files(tmp_path / "p", [TABLES["p"].slice(0, 60)])
    db = declared()
    db.start("0 seconds", checkpoint=tmp_path / "state", output=tmp_path / "out", shards=shards)
    until = monotonic() + 60
    while db.metrics()["streams"]["p"]["read"] < 60 and monotonic() < until:
        db.wait(0.1)
    assert db.update("names", insert=[{"a": 4, "name": "four"}], delete=[{"a": 1}]) == 19
    with pytest.raises(windrow.InputError, match="comes too late"):
        db.update("names", insert=[{"a": 5, "name": "five"}], time=3)
    with pytest.raises(windrow.StateError, match="before you drop relation names"):
        db.execute("DROP RELATION names")
    db.stop()
    write_files(tmp_path / "p", [TABLES["p"].slice(60)], first=1)
    again = declared()
    summary = again.run(checkpoint=tmp_path / "state", output=tmp_path / "out")
    assert (summary.resumed, summary.afresh) == (("named",), ())
    updates = [RelationUpdate(-(10**9), "+", row) for row in NAMES.to_pylist()]
    updates += [RelationUpdate(19, "+", {"a": 4, "name": "four"}), RelationUpdate(19, "-", {"a": 1})]
    found = ds.dataset(tmp_path / "out" / "named", format="parquet").to_table()
    assert_same(found, expected(again.queries()[0], {"names": updates}))
    assert {"a": 4, "name": "four"} in again.relation("names").to_pylist()
