"""Invariants 1 and 2 through Spark: the answers are DuckDB's, whatever the files, batches, partitions and scan."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import TICKS_DDL, write_files
from tests.random_queries import TICKS, queries, tables
from windrow.testing import Reference, assert_same, cut, shuffle_within

EXAMPLES = settings(max_examples=max(12, int(os.environ.get("WINDROW_EXAMPLES", "0")) // 10))
"""Each example is a run of Spark's: a second or so."""


def database(spark: SparkSession, path: Path, options: str = "", lateness: int = 0) -> windrow.Database:
    db = windrow.connect(spark=spark)
    db.execute(
        f"CREATE STREAM s ({TICKS_DDL}) TIME t LATENESS {lateness} USING parquet OPTIONS (path '{path}'{options})"
    )
    return db


def check(db: windrow.Database, table: pa.Table) -> None:
    for query in db.queries():
        expected = Reference(query.bound, {"s": table}).answers()
        assert_same(query.answers(), expected, ordered="ORDER BY" in query.text, absolute=1e-9)


@EXAMPLES
@given(
    table=tables(),
    texts=st.lists(queries(), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
    files=st.integers(1, 6),
    per_batch=st.integers(1, 4),
    scan=st.sampled_from(["arrow", "rows"]),
    lateness=st.sampled_from([0, 0, 8]),
)
def test_random_queries_on_random_files(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table: pa.Table,
    texts: list[str],
    seed: int,
    files: int,
    per_batch: int,
    scan: str,
    lateness: int,
) -> None:
    path = tmp_path_factory.mktemp("stream")
    write_files(path, cut(shuffle_within(table, "t", lateness, seed), seed, files))
    db = database(spark, path, f", scan '{scan}', maxFilesPerTrigger '{per_batch}'", lateness)
    for text in texts:
        db.query(text)
    summary = db.run()
    assert summary.ended and summary.progress.rows == table.num_rows and summary.progress.late == 0
    check(db, table)


ROWS = 400
TABLE = pa.table(
    {
        "t": [i // 3 for i in range(ROWS)],
        "a": [i % 7 for i in range(ROWS)],
        "b": [i * i for i in range(ROWS)],
        "x": [i / 8 for i in range(ROWS)],
        "s": [f"host-{i % 5}" for i in range(ROWS)],
        "f": [i % 2 == 0 for i in range(ROWS)],
        "d": [1000 * i for i in range(ROWS)],  # JSON and CSV have milliseconds
    },
    schema=TICKS,
)
TEXTS = [
    "SELECT s, SUM(x) AS v, MAX(d) AS last FROM s [RANGE 20 SLIDE 5] GROUP BY s",
    "SELECT COUNT(*) AS n FROM s [RANGE 7 SLIDE 3] WHERE a = 2 AND s <> 'host-1'",
    "SELECT a, MIN(s) AS m FROM s [RANGE 30 SLIDE 10 OFFSET 2] WHERE a IN (1, 2, 3) GROUP BY a",
]


@pytest.mark.parametrize("scan", ["arrow", "rows"])
def test_holistic_aggregates(spark: SparkSession, tmp_path: Path, scan: str) -> None:
    """All values with their counts travel from the workers, also those of one pane that several files have."""
    write_files(tmp_path, cut(TABLE, 3, 5))
    db = database(spark, tmp_path, f", scan '{scan}', maxFilesPerTrigger '2'", lateness=ROWS)
    db.query("SELECT a, MEDIAN(b) AS m, COUNT(DISTINCT s) AS n, MODE(s) AS o FROM s [RANGE 40 SLIDE 7] GROUP BY a")
    db.query("SELECT TOP_K(s, 2) AS t, SUM(DISTINCT b) AS d, QUANTILE(x, 0.9) AS q FROM s [RANGE 30 SLIDE 1]")
    db.run()
    check(db, TABLE)


@pytest.mark.parametrize("options", [", scan 'arrow'", ", scan 'rows'", ", scan 'rows', maxFilesPerTrigger '2'"])
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1:]], ids=["all", "only filtered"])
def test_late_rows_are_counted_and_kept_whole(
    spark: SparkSession, tmp_path: Path, options: str, texts: list[str]
) -> None:
    pieces = cut(TABLE, 3, 6)
    pieces = [pieces[0], pieces[2], pieces[1], *pieces[3:]]  # piece 1 comes too late
    one_by_one = options if "maxFiles" in options else options + ", maxFilesPerTrigger '1'"
    write_files(tmp_path / "in", pieces)
    db = database(spark, tmp_path / "in", one_by_one)
    pushed = windrow.connect()
    pushed.stream("s", TICKS, time="t")
    for text in texts:
        db.query(text)
        pushed.query(text)
    db.run()
    step = 2 if "maxFilesPerTrigger '2'" in options else 1
    for start in range(0, len(pieces), step):
        pushed.push("s", pa.concat_tables(pieces[start : start + step]))
    pushed.finish()
    ours, theirs = db.metrics()["streams"]["s"], pushed.metrics()["streams"]["s"]
    assert (ours["read"], ours["late"], ours["watermark"]) == (theirs["read"], theirs["late"], theirs["watermark"])
    assert sorted(map(repr, db.late("s").to_pylist())) == sorted(map(repr, pushed.late("s").to_pylist()))
    for one, other in zip(db.queries(), pushed.queries(), strict=True):
        assert_same(one.answers(), other.answers(), absolute=1e-9)


@pytest.mark.parametrize("predicate", ["FALSE", "a = 1 AND a = 2", "1 = 0", "NULL", "a > 3 AND FALSE"])
def test_predicates_that_no_row_satisfies(spark: SparkSession, tmp_path: Path, predicate: str) -> None:
    write_files(tmp_path / "in", [TABLE])
    db = database(spark, tmp_path / "in", ", scan 'rows'")
    db.query(f"SELECT COUNT(*) AS n FROM s [RANGE 7 SLIDE 3] WHERE {predicate}")
    db.run()
    check(db, TABLE)


def test_late_rows_are_written_beside_the_answers(spark: SparkSession, tmp_path: Path) -> None:
    pieces = cut(TABLE, 3, 4)
    write_files(tmp_path / "in", [pieces[1], pieces[0], *pieces[2:]])
    db = database(spark, tmp_path / "in", ", maxFilesPerTrigger '1'")
    db.query(TEXTS[0], name="q")
    summary = db.run(output=tmp_path / "out")
    assert summary.progress.late == pieces[0].num_rows
    written = pa.parquet.read_table(summary.outputs["late rows of s"])
    assert written.num_rows == pieces[0].num_rows
    assert sorted(written["b"].to_pylist()) == sorted(pieces[0]["b"].to_pylist())


def test_many_groups_in_one_pane(spark: SparkSession, tmp_path: Path) -> None:
    rows = 300_000
    keys = [f"key {i % 250_000}" for i in range(rows)]
    table = pa.table({"t": [1 + i * 20 // rows for i in range(rows)], "k": keys})
    write_files(tmp_path / "in", [table.slice(i * rows // 3, rows // 3) for i in range(3)])
    db = windrow.connect(spark=spark)
    db.execute(f"CREATE STREAM s (t BIGINT, k STRING) TIME t USING parquet OPTIONS (path '{tmp_path / 'in'}')")
    query = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 40 SLIDE 40] GROUP BY k")
    db.run()
    counts = query.answers().group_by("_time").aggregate([("n", "sum"), ("k", "count_distinct")])
    assert counts.to_pylist() == [{"_time": 40, "n_sum": rows, "k_count_distinct": 250_000}]


@pytest.mark.parametrize(
    ("form", "options"),
    [("json", ""), ("csv", ", header 'true'"), ("orc", ""), ("parquet", ", scan 'rows'"), ("parquet", "")],
)
def test_every_file_format_gives_the_same_answers(spark: SparkSession, tmp_path: Path, form: str, options: str) -> None:
    frame = spark.createDataFrame(TABLE)
    frame.coalesce(1).write.format(form).option("header", "true").save(str(tmp_path / "in"))
    db = windrow.connect(spark=spark)
    db.execute(f"CREATE STREAM s ({TICKS_DDL}) TIME t USING {form} OPTIONS (path '{tmp_path / 'in'}'{options})")
    for text in TEXTS:
        db.query(text)
    db.run()
    check(db, TABLE)


def test_text_is_parsed_by_the_option_select(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [f"{row['t']} {row['s']} {row['b']}" for row in TABLE.to_pylist()]
    (tmp_path / "in" / "log.txt").write_text("\n".join(lines))
    words = [f'split(value, " ")[{place}]' for place in range(3)]
    select = f"CAST({words[0]} AS BIGINT) AS t, {words[1]} AS s, CAST({words[2]} AS BIGINT) AS b"
    options = f"path '{tmp_path / 'in'}', select '{select}'"
    db = windrow.connect(spark=spark)
    db.execute(f"CREATE STREAM s (t BIGINT, s STRING, b BIGINT) TIME t USING text OPTIONS ({options})")
    db.query("SELECT s, SUM(b) AS v FROM s [RANGE 20 SLIDE 5] GROUP BY s")
    db.run()
    check(db, TABLE.select(["t", "s", "b"]))


def test_a_dataframe_of_the_user(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", cut(TABLE, 1, 3))
    frame = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    kept = frame.where("a > 2").selectExpr("t", "upper(s) AS host", "b * 2 AS doubled")
    db = windrow.connect(spark=spark)
    db.stream("s", kept, time="t")
    db.query("SELECT host, SUM(doubled) AS v FROM s [RANGE 20 SLIDE 5] GROUP BY host")
    db.run()
    rows = [row for row in TABLE.to_pylist() if row["a"] > 2]
    expected = pa.table(
        {
            "t": [row["t"] for row in rows],
            "host": [row["s"].upper() for row in rows],
            "doubled": [2 * row["b"] for row in rows],
        }
    )
    check(db, expected)


def test_a_static_dataframe_is_one_batch(spark: SparkSession) -> None:
    db = windrow.connect(spark=spark)
    db.stream("s", spark.createDataFrame(TABLE), time="t")
    for text in TEXTS:
        db.query(text)
    assert db.run().progress.steps == 1
    check(db, TABLE)


def test_several_streams_keep_pace(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "s", [TABLE.slice(i, 20) for i in range(0, ROWS, 20)])
    write_files(tmp_path / "r", [TABLE.slice(i, 100) for i in range(0, ROWS, 100)])
    db = database(spark, tmp_path / "s", ", maxFilesPerTrigger '1'")
    db.execute(
        f"CREATE STREAM r ({TICKS_DDL}) TIME t USING parquet OPTIONS (path '{tmp_path / 'r'}', maxFilesPerTrigger '1')"
    )
    db.query(TEXTS[0])
    db.query(TEXTS[0].replace("FROM s", "FROM r"))
    leads: list[int] = []

    def watch(progress: windrow.Progress) -> None:
        marks = [stream.watermark for stream in progress.streams]
        if progress.state == "reading" and None not in marks:
            leads.append(abs(marks[0] - marks[1]))

    db.run(progress=watch)
    check_both = db.queries()
    assert_same(check_both[0].answers(), check_both[1].answers(), absolute=1e-9)
    check_one = Reference(check_both[0].bound, {"s": TABLE}).answers()
    assert_same(check_both[0].answers(), check_one, absolute=1e-9)
    # A batch of r is 33 ticks long, one of s 7: nobody is ahead by more than one batch of each.
    assert leads and max(leads) <= 33 + 7 + 1


def test_queries_with_into_and_output(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", cut(TABLE, 1, 3))
    db = database(spark, tmp_path / "in")
    db.execute(f"CREATE QUERY one INTO json OPTIONS (path '{tmp_path / 'json'}') AS {TEXTS[0]}")
    db.execute(f"CREATE QUERY two INTO memory AS {TEXTS[0]}; CREATE QUERY three AS {TEXTS[0]}")
    db.execute(f"CREATE QUERY four INTO orc OPTIONS (path '{tmp_path / 'orc'}') AS {TEXTS[0]}")
    summary = db.run(output=tmp_path / "out", format="csv")
    expected = db.queries()[1].answers()
    assert expected.num_rows
    assert summary.outputs["one"] == str(tmp_path / "json") and "two" not in summary.outputs
    for found in (
        spark.read.json(str(tmp_path / "json")),
        spark.read.option("header", "true").csv(str(tmp_path / "out" / "three")),
        spark.read.orc(str(tmp_path / "orc")),
    ):
        assert found.count() == expected.num_rows
        total = found.selectExpr("sum(CAST(v AS DOUBLE)) AS v").first()
        assert total is not None and total["v"] == pytest.approx(sum(expected["v"].to_pylist()))


def test_the_latest_answer_is_a_view(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", cut(TABLE, 1, 3))
    db = database(spark, tmp_path / "in")
    query = db.query(TEXTS[0].replace("MAX(d)", "MAX(b)"), name="busy hosts")
    assert db.sql_view("busy hosts").count() == 0
    db.run(output=tmp_path / "out")
    newest = db.sql_view(query).orderBy("s").toArrow().to_pylist()
    again = spark.sql("SELECT * FROM `busy hosts` ORDER BY s").toArrow().to_pylist()
    reference = Reference(query.bound, {"s": TABLE}).answers().to_pylist()
    last = max(row["_time"] for row in reference)
    assert newest == again == sorted((row for row in reference if row["_time"] == last), key=lambda row: row["s"])


def test_a_relation_from_a_batch_source(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text("name,owner\nhost-1,ann\nhost-2,bob\n")
    db = windrow.connect(spark=spark)
    db.execute(
        f"CREATE RELATION hosts (name STRING, owner STRING) KEY (name) USING csv "
        f"OPTIONS (path '{tmp_path / 'hosts.csv'}', header 'true')"
    )
    assert db.relation("hosts").to_pylist() == [
        {"name": "host-1", "owner": "ann"},
        {"name": "host-2", "owner": "bob"},
    ]
