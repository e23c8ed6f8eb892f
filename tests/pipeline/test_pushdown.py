"""What Spark leaves out before the rows go to Python: never a row that some query would have taken."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tests.pipeline.local_spark import declared, local_spark, plans
from tests.random_queries import tables
from windrow.errors import InputError, QueryError
from windrow.expressions import Compiler, Context
from windrow.language.catalog import Stream
from windrow.pipeline.pushdown import Observed, common_filter, narrow, observed, refuse_null_times
from windrow.pipeline.sources import open_source
from windrow.testing.render import to_duckdb

TEXT = (
    "CREATE STREAM s (t BIGINT, a INTEGER, b BIGINT, x DOUBLE, s VARCHAR, f BOOLEAN, d TIMESTAMP, day DATE, "
    "`odd ``name` TINYINT) TIME t"
).replace("`odd ``name`", '"odd `name"')


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with local_spark() as session:
        yield session


def where(*predicates: str) -> str | None:
    return common_filter(
        plans(TEXT, *(f"SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5] {'WHERE ' if one else ''}{one}" for one in predicates))
    )


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        ("a > -3", "(`a` > -3)"),
        ("-3 <= a", "(`a` >= -3)"),
        ("5 <> a", "(`a` <> 5)"),
        ("(b = 9223372036854775807)", "(`b` = 9223372036854775807)"),
        ("a BETWEEN 1 AND 1 + 2", "(`a` BETWEEN 1 AND 3)"),
        ("a NOT IN (1, 2)", "(NOT (`a` IN (1, 2)))"),
        ("S = 'u'", "(`s` = 'u')"),
        ("s < 'it''s \\ '", "(`s` < CAST(X'69742773205c20' AS STRING))"),
        ("s >= 'ö'", "(`s` >= CAST(X'c3b6' AS STRING))"),
        ("f AND NOT f", "(`f` AND (NOT `f`))"),
        ("f <> TRUE OR a IS NOT NULL", "((`f` <> true) OR (NOT (`a` IS NULL)))"),
        ("d >= '1970-01-01 00:00:00.5'", "(`d` >= timestamp_micros(500000))"),
        ("d < TIMESTAMP '1969-12-31'", "(`d` < timestamp_micros(-86400000000))"),
        ("day = DATE '1970-01-02'", "(`day` = date_from_unix_date(1))"),
        ('"odd `name" = 1', "(`odd ``name` = 1)"),
        ("x > 1 AND a = 1 AND f", "coalesce((`a` = 1) AND `f`, true)"),
        ("a = 2 OR x > 1 AND a = 1", "((`a` = 2) OR coalesce((`a` = 1), true))"),
    ],
)
def test_what_means_the_same_in_spark(predicate: str, condition: str) -> None:
    assert where(predicate) == condition


@pytest.mark.parametrize(
    "predicate",
    [
        "x > 1",
        "a = 1.0",
        "a = b",
        "a + 1 > 2",
        "s LIKE 'u%'",
        "s = NULL",
        "a IN (1, NULL)",
        "NOT (a = 1 AND x > 1)",
        "a = 1 OR x > 1",
        "d > DATE '2024-01-01'",
        "CAST(s AS INTEGER) = 1",
        "a IN (" + ", ".join(str(number) for number in range(9_000)) + ")",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_left_to_python(predicate: str) -> None:
    assert where(predicate) is None
    assert where("a = 1", predicate) is None


def test_the_filter_is_for_all_queries_together() -> None:
    assert where("a = 1", "s = 'u'", "a = 1") == "(`a` = 1) OR (`s` = 'u')"
    assert where("a = 1", "") is None
    assert common_filter([]) is None


# ---- in Spark ------------------------------------------------------------------------------------------------------


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def through_python(frame: DataFrame) -> pa.Table:
    """As the pipeline does it: one mapInArrow, one toArrow, no other action."""
    return frame.mapInArrow(same, frame.schema).toArrow()


def test_projection_reaches_the_scan_and_the_filter_runs_before_python(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"t": [1, 2], "a": [5, 6], "b": [7, 8], "unused": ["x", "y"]}), tmp_path / "f.parquet")
    stream = declared("CREATE STREAM s (t BIGINT, a BIGINT, b BIGINT, unused VARCHAR) TIME t")
    source = open_source(spark, stream, spark.read.parquet(str(tmp_path)))
    frame = narrow(source.frame, stream, ["t", "a"], "(`a` > 5)", 0, Observation("plan"))
    frame.mapInArrow(same, frame.schema).explain()
    plan = capsys.readouterr().out
    assert "ReadSchema: struct<t:bigint,a:bigint>" in plan
    nodes = [plan.index(node) for node in ("MapInArrow", "Filter (", "CollectMetrics plan", "FileScan parquet")]
    assert nodes == sorted(nodes)  # the top of the plan is printed first


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_late_rows_pass_and_all_rows_are_observed(spark: SparkSession, zone: str, kind: str) -> None:
    stream = declared("CREATE STREAM s (ts TIMESTAMP, a INTEGER) TIME ts")
    ticks = [-(10**15), -1, 0, 1, 1_700_000_000_123_456, None]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = spark.createDataFrame([(tick, index) for index, tick in enumerate(ticks)], "n bigint, a int")
    given = rows.select(F.expr(f"CAST(timestamp_micros(n) AS {kind})").alias("ts"), "a")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        observation = Observation()
        frame = narrow(open_source(spark, stream, given).frame, stream, ["ts", "a"], "(`a` = 3)", -1, observation)
        result = through_python(frame)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert result["a"].to_pylist() == [0, 1, 3]
    assert result["ts"].cast(pa.int64()).to_pylist() == [-(10**15), -1, 1]
    seen = observed(observation)
    assert seen == Observed(6, 1, -(10**15), 1_700_000_000_123_456, 0)
    with pytest.raises(InputError, match="the time column ts of stream s has 1 NULLs in a batch of 6 rows"):
        refuse_null_times(stream, seen)


def test_ticks_without_filter_and_without_rows(spark: SparkSession) -> None:
    stream = declared("CREATE STREAM s (t BIGINT, a INTEGER) TIME t")
    rows = spark.createDataFrame([(2**62, 1), (-(2**62), 2)], "t bigint, a int")
    full, empty = Observed(2, 0, -(2**62), 2**62, -(2**62)), Observed(0, 0, None, None, None)
    for frame, expected in ((rows, full), (rows.where("a > 9"), empty)):
        observation = Observation()
        assert through_python(narrow(frame, stream, ["t"], None, None, observation)).num_rows == expected.rows
        assert observed(observation) == expected


def test_observations_inside_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = declared(
        f"CREATE STREAM s (t BIGINT, a BIGINT) TIME t USING parquet OPTIONS (path '{tmp_path}/in', scan 'rows', "
        "maxFilesPerTrigger '1')"
    )
    (tmp_path / "in").mkdir()
    for part in range(3):
        pq.write_table(pa.table({"t": [part, part + 10], "a": [part, 1]}), tmp_path / "in" / f"{part}.parquet")
    seen: list[tuple[Observed, int]] = []

    def take(batch: DataFrame, _: int) -> None:
        observation = Observation()
        result = through_python(narrow(batch, stream, ["t"], "(`a` = 1)", None, observation))
        seen.append((observed(observation), result.num_rows))

    source = open_source(spark, stream)
    writer = source.frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(seen, key=lambda one: one[0].oldest or 0) == [
        (Observed(2, 0, part, part + 10, part), 2 if part == 1 else 1) for part in range(3)
    ]


# ---- never a row too few --------------------------------------------------------------------------------------------

_COLUMNS = {
    "a": ["-3", "0", "1", "5", "1 + 1", "1099511627776"],
    "b": ["0", "-3", "1099511627776", "-4611686018427387904"],
    "s": ["''", "'u'", "'höst'", "'v'", "'it''s'"],
    "d": ["'1970-01-01'", "TIMESTAMP '2023-11-14 22:13:20'", "'1969-12-31 23:59:59.999995'", "DATE '1970-01-01'"],
    "f": ["TRUE", "FALSE"],
    "x": ["0.0", "1.5", "-2.25"],
}


def random_predicate(chance: random.Random, depth: int) -> str:
    """Nested AND, OR and NOT over all comparisons, with parts that Spark is not asked to understand."""
    kind = chance.choice(["and", "or", "not"] if depth else ["compare"])
    if kind == "not":
        return f"NOT ({random_predicate(chance, depth - 1)})"
    if kind in ("and", "or"):
        parts = [random_predicate(chance, chance.randrange(depth)) for _ in range(chance.choice([2, 2, 3]))]
        return "(" + f" {kind} ".join(parts) + ")"
    column = chance.choice(list(_COLUMNS))
    one, two = chance.choice(_COLUMNS[column]), chance.choice(_COLUMNS[column])
    sign = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    forms = [
        f"{column} {sign} {one}",
        f"{one} {sign} {column}",
        f"{column} IS {chance.choice(['', 'NOT '])}NULL",
        f"{column} {chance.choice(['', 'NOT '])}BETWEEN {one} AND {two}",
        f"{column} {chance.choice(['', 'NOT '])}IN ({one}, {two})",
        chance.choice(["f", "s LIKE 'u%'", "a % 2 = 0", "x > a", "f IS TRUE", "a IS DISTINCT FROM 1"]),
    ]
    return chance.choice(forms)


@settings(max_examples=25)
@given(table=tables(most=40), seed=st.integers(0, 2**32))
def test_no_row_too_few(spark: SparkSession, table: pa.Table, seed: int) -> None:
    chance = random.Random(seed)
    table = table.append_column("n", pa.array(range(table.num_rows), pa.int64()))
    frame = spark.createDataFrame(table)
    columns = "t BIGINT, a INTEGER, b BIGINT, x DOUBLE, s VARCHAR, f BOOLEAN, d TIMESTAMP, n BIGINT"
    declaration = f"CREATE STREAM s ({columns}) TIME t"
    rows = open_source(spark, declared(declaration), frame).frame
    checks = []
    for _ in range(6):
        queries = [random_predicate(chance, chance.choice([0, 1, 2, 3])) for _ in range(chance.choice([1, 1, 2]))]
        made = plans(declaration, *(f"SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5] WHERE {one}" for one in queries))
        condition = common_filter(made)
        if condition is not None:
            wanted = " OR ".join(f"({to_duckdb(plan.predicate)})" for plan in made if plan.predicate is not None)
            checks.append((queries, condition, wanted))
    if not checks or not table.num_rows:
        return
    result = rows.select(*(F.expr(f"coalesce({one[1]}, false)").alias(f"c{i}") for i, one in enumerate(checks)))
    kept = result.toArrow()
    for index, (queries, condition, wanted) in enumerate(checks):
        expected = duckdb.sql(f'SELECT coalesce({wanted}, false) AS w FROM "table" ORDER BY n').fetchall()
        exact = "coalesce" not in condition
        for row, (mine, (theirs,)) in enumerate(zip(kept[f"c{index}"].to_pylist(), expected, strict=True)):
            shown = f"{queries} became {condition}; row {table.slice(row, 1).to_pylist()}"
            assert mine or not theirs, f"lost: {shown}"
            assert not exact or mine == theirs, f"not the same: {shown}"


def test_a_row_on_which_a_query_fails_is_kept(spark: SparkSession) -> None:
    table = pa.table({"t": [1, 2, 3], "a": pa.array([None, 1, 2], pa.int64()), "s": ["no number", "7", "no number"]})
    text = "CREATE STREAM s (t BIGINT, a BIGINT, s VARCHAR) TIME t"
    (plan,) = plans(text, "SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5] WHERE a = 1 AND CAST(s AS INTEGER) = 7")
    condition = common_filter([plan])
    stream: Stream = plan.stream
    result = through_python(narrow(spark.createDataFrame(table), stream, ["t", "a", "s"], condition, None))
    assert result["t"].to_pylist() == [1, 2]
    assert plan.predicate is not None
    program = Compiler().compile(plan.predicate)
    with pytest.raises(QueryError):
        Context.of(table).value(program)
    with pytest.raises(QueryError):
        Context.of(result).value(program)
    assert Context.of(table.slice(2)).value(program).to_pylist() == [False]
