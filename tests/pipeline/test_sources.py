"""Declared streams and relations become DataFrames with exactly the declared columns, or a clear error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.pipeline.local_spark import declared, local_spark, read_all
from windrow.errors import BindError, InputError, SetupError
from windrow.language.catalog import Relation, relation_from_node
from windrow.language.parse import parse_one
from windrow.pipeline.declared import BYTES_PER_TRIGGER, fingerprint
from windrow.pipeline.scan import fit, read_file
from windrow.pipeline.sources import Source, open_source, read_relation, stream_from_frame

COLUMNS = "t BIGINT, a INTEGER, name VARCHAR"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with local_spark() as session:
        yield session


def table(*times: int) -> pa.Table:
    return pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "a": pa.array([time % 5 for time in times], pa.int32()),
            "name": [f"n{time}" for time in times],
        }
    )


def statement(format_: str, columns: str = COLUMNS, time: str = "t", **options: Any) -> str:
    quoted = {name: str(value).replace("'", "''") for name, value in options.items()}
    listed = ", ".join(f"\"{name}\" '{value}'" for name, value in quoted.items())
    return f"CREATE STREAM s ({columns}) TIME {time} USING {format_} {f'OPTIONS ({listed})' if listed else ''}"


def opened(spark: SparkSession, format_: str, columns: str = COLUMNS, time: str = "t", **options: Any) -> Source:
    return open_source(spark, declared(statement(format_, columns, time, **options)))


def all_rows(source: Source, checkpoint: Path) -> pa.Table:
    """Everything in the source, through either scan, in the order of time."""
    stream = source.stream
    names = [column.name for column in stream.columns]
    batches = read_all(source.frame, checkpoint)
    if source.scan == "arrow":
        paths = [path for batch in batches for path in batch["path"].to_pylist()]
        pieces = [piece for path in paths for piece in read_file(path, stream, names)]
    else:
        pieces = [fit(batch, stream, names) for batch in batches]
    return pa.concat_tables([stream.schema.empty_table(), *pieces]).sort_by(stream.time).combine_chunks()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three Parquet files, and some that Spark does not look at."""
    folder = tmp_path / "in"
    (folder / "deeper").mkdir(parents=True)
    for index, name in enumerate(["one.parquet", "two three.parquet", "a%20b.parquet"]):
        pq.write_table(table(index, index + 10), folder / name)
        os.utime(folder / name, (1_700_000_000 + index, 1_700_000_000 + index))
    for name in ("_hidden.parquet", ".hidden.parquet", "deeper/four.parquet"):
        pq.write_table(table(99), folder / name)
    return folder


# ---- which scan ----------------------------------------------------------------------------------------------------


def test_both_scans_give_the_same_rows(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    arrow, rows = opened(spark, "Parquet", path=files), opened(spark, "parquet", path=files, scan="rows")
    assert (arrow.scan, arrow.frame.columns, arrow.frame.isStreaming) == ("arrow", ["path"], True)
    assert arrow.why == "arrow scan: Spark tracks the Parquet files, the workers read them with PyArrow"
    assert (rows.scan, rows.why) == ("rows", "row path: asked for by the option scan")
    assert arrow.bounded
    expected = table(0, 1, 2, 10, 11, 12)
    assert all_rows(arrow, tmp_path / "c1") == expected
    assert all_rows(rows, tmp_path / "c2") == expected


def test_the_workers_read_the_files(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    source = opened(spark, "parquet", path=files)
    stream = source.stream

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                for piece in read_file(path, stream, ["t"]):
                    yield from piece.to_batches()

    found: list[int] = []
    frame = source.frame
    for attempt in ("good", "bad"):
        query = (
            frame.writeStream.foreachBatch(
                lambda batch, _: found.extend(batch.mapInArrow(read, "t bigint").toArrow()["t"].to_pylist())
            )
            .option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )
        if attempt == "good":
            query.awaitTermination()
            (files / "bad.parquet").write_bytes(b"PAR1 is not enough")
        else:
            with pytest.raises(StreamingQueryException, match=r"bad\.parquet, a file of stream s, cannot be read as"):
                query.awaitTermination()
    assert sorted(found) == [0, 1, 2, 10, 11, 12]


def test_files_are_counted_as_spark_lists_them(spark: SparkSession, files: Path) -> None:
    assert opened(spark, "parquet", path=files).files == 3
    assert opened(spark, "parquet", path=files, recursiveFileLookup="true").files == 4
    assert opened(spark, "parquet", path=files, pathGlobFilter="*o*.parquet").files == 2
    assert opened(spark, "parquet", path=f"{files}/{{one,two*}}.parquet").files == 2
    assert opened(spark, "parquet", path=files / "one.parquet").files == 1
    assert opened(spark, "rate", "timestamp TIMESTAMP, value BIGINT", "timestamp").files is None


@pytest.mark.parametrize("scan", ["arrow", "rows"])
def test_a_single_file_and_a_pattern_are_paths_too(spark: SparkSession, files: Path, tmp_path: Path, scan: str) -> None:
    for index, name in enumerate(["one.parquet", "two three.parquet"]):
        single = opened(spark, "parquet", path=files / name, scan=scan)
        assert all_rows(single, tmp_path / f"c{index}") == table(index, index + 10)
    pattern = opened(spark, "parquet", path=f"{files}/*three.parquet", scan=scan)
    assert all_rows(pattern, tmp_path / "c") == table(1, 11)


def test_the_pace(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    for index, (options, batches) in enumerate(
        [({}, 1), ({"maxFilesPerTrigger": 1}, 3), ({"maxfilespertrigger": 2}, 2), ({"maxBytesPerTrigger": 1}, 3)]
    ):
        found = read_all(opened(spark, "parquet", path=files, **options).frame, tmp_path / f"c{index}")
        assert len(found) == batches, options
        assert found[0]["path"][0].as_py().endswith("one.parquet")  # the oldest first
    assert BYTES_PER_TRIGGER == 2**30
    for name in ("maxFilesPerTrigger", "maxBytesPerTrigger"):
        with pytest.raises(SetupError, match=f"stream s: the option {name} must be a whole number above 0, found '1g'"):
            opened(spark, "parquet", path=files, **{name: "1g"})
    with pytest.raises(SetupError, match="not both"):
        opened(spark, "parquet", path=files, maxFilesPerTrigger=1, maxBytesPerTrigger=1)


def test_a_run_may_change_its_scan(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    """Spark's log of files is the same for both, which is why `scan` is not in the fingerprint."""
    assert all_rows(opened(spark, "parquet", path=files), tmp_path / "c").num_rows == 6
    pq.write_table(table(50), files / "new.parquet")
    assert all_rows(opened(spark, "parquet", path=files, scan="rows"), tmp_path / "c") == table(50)
    pq.write_table(table(60), files / "newer.parquet")
    assert all_rows(opened(spark, "parquet", path=files), tmp_path / "c") == table(60)


def test_columns_in_the_names_of_directories(spark: SparkSession, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        pq.write_table(table(day), tmp_path / "in" / f"day={day}" / "f.parquet")
    source = opened(spark, "parquet", "t BIGINT, DAY BIGINT", path=tmp_path / "in")
    assert (source.scan, source.why) == ("rows", "row path: the column DAY is in the names of the directories")
    assert all_rows(source, tmp_path / "c1").to_pylist() == [{"t": 1, "DAY": 1}, {"t": 2, "DAY": 2}]
    # A column that nobody declared does not matter.
    source = opened(spark, "parquet", path=tmp_path / "in")
    assert source.scan == "arrow"
    assert all_rows(source, tmp_path / "c2") == table(1, 2)
    with pytest.raises(SetupError, match="scan 'arrow' is not possible here: the column day is in the names"):
        opened(spark, "parquet", "t BIGINT, day INTEGER", path=tmp_path / "in", scan="arrow")


@pytest.mark.parametrize(
    ("format_", "options", "reason"),
    [
        ("csv", {}, r"csv is parsed by Spark \(its options and NULL rules are Spark's\)"),
        ("orc", {}, "orc is read by Spark"),
        ("parquet", {"select": "t, a, name"}, "the option select is computed by Spark"),
        ("parquet", {"mergeSchema": "true"}, "the option mergeSchema is one of Spark's own reader"),
        ("parquet", {"ignoreCorruptFiles": "true"}, "the option ignoreCorruptFiles is one of Spark's own reader"),
    ],
)
def test_what_only_spark_can_read(
    spark: SparkSession, files: Path, format_: str, options: dict[str, str], reason: str
) -> None:
    if format_ == "parquet":
        assert opened(spark, format_, path=files, **options).why == f"row path: {reason}"
    with pytest.raises(SetupError, match=rf"stream s: scan 'arrow' is not possible here: {reason}; leave"):
        opened(spark, format_, path=files, scan="arrow", **options)


def test_an_empty_directory_may_fill_later(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for index, (format_, options) in enumerate([("parquet", {}), ("parquet", {"scan": "rows"}), ("orc", {})]):
        source = opened(spark, format_, path=tmp_path / "in", **options)
        assert source.scan == ("arrow" if index == 0 else "rows")
        assert source.files == 0
        assert all_rows(source, tmp_path / f"c{index}").num_rows == 0
    with pytest.raises(SetupError, match=r"there is no file under .* yet, so nobody knows the columns"):
        opened(spark, "json", path=tmp_path / "in", select="t, a, name")


# ---- what the declaration says --------------------------------------------------------------------------------------


def test_types_are_widened_but_never_narrowed(spark: SparkSession, tmp_path: Path) -> None:
    source_table = pa.table(
        {
            "T": pa.array([1], pa.int32()),
            "d": pa.array([1.5], pa.float32()),
            "n": pa.array([2**53], pa.int64()),
            "m": pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            "day": [date(2024, 2, 29)],
            "wall": pa.array([5], pa.timestamp("us")),
            "instant": pa.array([5], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(source_table, tmp_path / "f.parquet")
    columns = "t BIGINT, d DOUBLE, n DOUBLE, m DECIMAL(10, 2), day TIMESTAMP, wall TIMESTAMP, instant TIMESTAMP"
    found = [
        all_rows(opened(spark, "parquet", columns, path=tmp_path / "f.parquet", scan=scan), tmp_path / scan)
        for scan in ("arrow", "rows")
    ]
    moment = datetime(1970, 1, 1, 0, 0, 0, 5)
    expected = [1, 1.5, 2.0**53, Decimal("1.50"), datetime(2024, 2, 29), moment, moment]
    assert found[0] == found[1]
    assert list(found[0].to_pylist()[0].values()) == expected
    for scan, where in (("arrow", "the file .* has int64"), ("rows", "the source has bigint; cast it with the option")):
        with pytest.raises(InputError, match=f"column n of stream s must be INTEGER.*, {where}"):
            opened(spark, "parquet", "t BIGINT, n INTEGER", path=tmp_path / "f.parquet", scan=scan)
    with pytest.raises(InputError, match=r"column other of stream s is not in the file .*, which has T, d, n, m"):
        opened(spark, "parquet", "t BIGINT, other INTEGER", path=tmp_path / "f.parquet")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_csv_by_name_and_in_utc(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f.csv").write_text(
        "name,more,T,at\nx,?,1,2024-01-01 00:00:00\n,?,2,2024-01-01T01:00:00+01:00\n"
    )
    columns = "t BIGINT, name VARCHAR, at TIMESTAMP"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        source = opened(spark, "csv", columns, path=tmp_path / "in", header="true")
        assert spark.conf.get("spark.sql.session.timeZone") == zone
        rows = all_rows(source, tmp_path / "c")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    midnight = datetime(2024, 1, 1)
    assert rows.to_pylist() == [{"t": 1, "name": "x", "at": midnight}, {"t": 2, "name": None, "at": midnight}]


def failure(source: Source, checkpoint: Path) -> str:
    with pytest.raises(Exception) as error:  # Spark's own, whatever it is
        all_rows(source, checkpoint)
    return str(error.value)


def test_records_that_do_not_parse_are_no_nulls(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "f.csv").write_text("1,2,x\nzwei,2,y\n")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "f.json").write_text('{"t": 1, "name": "x"}\n{"t": 1.5}\n')
    for format_ in ("csv", "json"):
        source = opened(spark, format_, path=tmp_path / format_)
        assert "error while reading file" in failure(source, tmp_path / f"{format_}1")
        lax = opened(spark, format_, path=tmp_path / format_, MODE="PERMISSIVE")
        assert all_rows(lax, tmp_path / f"{format_}2").num_rows == 2


def test_a_csv_header_that_changes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("t,a,name\n1,1,x\n")
    source = opened(spark, "csv", path=tmp_path / "in", header="true")
    (tmp_path / "in" / "b.csv").write_text("a,t,name\n2,7,x\n")
    assert "error while reading file" in failure(source, tmp_path / "c")


def test_select_parses_text_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "log").write_text("3 {a}\n1 it's\n")
    select = """CAST(split(value, " ")[0] AS BIGINT) AS t, split(value, " ")[1] AS name, '{x}' AS y"""
    source = opened(spark, "text", "t BIGINT, name VARCHAR, y VARCHAR", path=tmp_path / "in", select=select)
    assert source.scan == "rows"
    rows = all_rows(source, tmp_path / "c").to_pylist()
    assert rows == [{"t": 1, "name": "it's", "y": "{x}"}, {"t": 3, "name": "{a}", "y": "{x}"}]
    with pytest.raises(InputError, match=r"column t of stream s is not in the source, which has value; cast it with"):
        opened(spark, "text", path=tmp_path / "in")
    with pytest.raises(SetupError, match=r"stream s: Spark cannot open the text source: .*nosuch"):
        opened(spark, "text", path=tmp_path / "in", select="nosuch AS t")


def test_select_over_json_sees_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f.json").write_text(json.dumps({"at": {"t": 7}, "who": "x"}) + "\n")
    source = opened(spark, "json", path=tmp_path / "in", select="at.t, 1 AS a, who AS name")
    assert all_rows(source, tmp_path / "c").to_pylist() == [{"t": 7, "a": 1, "name": "x"}]


# ---- other sources --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format_", "options"),
    [("rate", {"rowsPerSecond": 5}), ("rate-micro-batch", {"rowsPerBatch": 5}), ("socket", {"host": "h", "port": 1})],
)
def test_sources_that_never_end(spark: SparkSession, format_: str, options: dict[str, Any]) -> None:
    if format_ == "socket":
        options = {**options, "select": "CAST(value AS BIGINT) AS t"}
        columns, time = "t BIGINT", "t"
    else:
        columns, time = "timestamp TIMESTAMP, value BIGINT", "timestamp"
    text = statement(f'"{format_}"', columns, time, **options)
    source = open_source(spark, declared(text))
    assert (source.bounded, source.scan, source.frame.isStreaming) == (False, "rows", True)
    given = spark.readStream.format(format_).options(**{k: str(v) for k, v in options.items()}).load()
    if format_ != "socket":
        assert not open_source(spark, source.stream, given.where("value > 3")).bounded


def test_a_dataframe_of_the_users_own(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    reader = spark.readStream.schema("t bigint, a int, name string, more array<int>")
    frame = reader.parquet(str(files)).where("t > 1").selectExpr("name", "a", "t")
    stream = stream_from_frame("s", frame, time="T", lateness=3)
    assert [column.name for column in stream.columns] == ["name", "a", "t"]
    assert (stream.time, stream.lateness, stream.format) == ("t", 3, None)
    source = open_source(spark, stream, frame)
    assert (source.scan, source.why, source.bounded) == ("rows", "row path: the rows come from a DataFrame", True)
    assert all_rows(source, tmp_path / "c").select(["t", "a", "name"]) == table(2, 10, 11, 12)
    assert source.files is None
    static = open_source(spark, stream, spark.createDataFrame(table(4)))
    assert (static.frame.isStreaming, static.bounded, static.frame.columns) == (False, True, ["name", "a", "t"])
    with pytest.raises(InputError, match="column t of stream s must be BIGINT, the source has string; cast it in the"):
        open_source(spark, stream, frame.selectExpr("name", "a", "CAST(t AS STRING) AS t"))
    with pytest.raises(InputError, match="column t of stream s is there 2 times"):
        open_source(spark, stream, frame.selectExpr("name", "a", "t", "t"))
    with pytest.raises(InputError, match="stream s: the column more is array<int>"):
        stream_from_frame("s", reader.parquet(str(files)), time="t")
    with pytest.raises(BindError, match="has no column when"):
        stream_from_frame("s", frame, time="when")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (statement("parquet", path="nowhere/at/all"), "stream s: there is nothing at nowhere/at/all"),
        (statement("csv", path="nowhere/*.csv"), r"stream s: there is nothing at nowhere/\*.csv"),
        (statement("json", other="x"), "stream s: json needs a path"),
        (statement("parquet", path="x", scan="fast"), "the option scan must be 'arrow' or 'rows', found 'fast'"),
        (statement("nosuch", path="x"), "Spark cannot open the nosuch source: .*Failed to find the data source"),
        (statement("socket"), "Spark cannot open the socket source: Set a host to read from"),
        (
            statement("kafka", subscribe="x"),
            r"--set spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4\.",
        ),
        ("CREATE STREAM s (t BIGINT) TIME t", "stream s has no source; declare it with USING"),
    ],
)
def test_sources_that_cannot_be_opened(spark: SparkSession, text: str, message: str) -> None:
    with pytest.raises(SetupError, match=message) as error:
        open_source(spark, declared(text))
    assert "\n" not in str(error.value)


# ---- relations ------------------------------------------------------------------------------------------------------


def relation(columns: str, key: str, format_: str, **options: Any) -> Relation:
    listed = ", ".join(f"\"{name}\" '{value}'" for name, value in options.items())
    return relation_from_node(
        parse_one(f"CREATE RELATION r ({columns}) {key} USING {format_} OPTIONS ({listed})")  # type: ignore[arg-type]
    )


def test_relations(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("id,since,name\n1,2024-01-01,x\n2,,y\n")
    columns = "id BIGINT, name VARCHAR, since DATE"
    found = read_relation(spark, relation(columns, "KEY (id)", "csv", path=tmp_path / "f.csv", header="true"))
    assert found == pa.table({"id": [1, 2], "name": ["x", "y"], "since": [date(2024, 1, 1), None]})
    pq.write_table(pa.table({"id": pa.array([1, 1], pa.int8()), "name": ["x", "y"]}), tmp_path / "f.parquet")
    options = {"path": tmp_path / "f.parquet"}
    pair = relation("id BIGINT, name VARCHAR", "KEY (id, name)", "parquet", **options)
    assert read_relation(spark, pair)["id"].to_pylist() == [1, 1]
    with pytest.raises(InputError, match=r"the KEY \(id\) of relation r must be unique, .* has 2 rows with id = 1;"):
        read_relation(spark, relation("id BIGINT, name VARCHAR", "KEY (id)", "parquet", **options))
    with pytest.raises(InputError, match="column name of relation r must be BIGINT, the source has string"):
        read_relation(spark, relation("id BIGINT, name BIGINT", "", "parquet", **options))
    with pytest.raises(SetupError, match="relation r: there is nothing at"):
        read_relation(spark, relation("id BIGINT", "", "json", path=tmp_path / "no"))
    with pytest.raises(SetupError, match="relation r: the option scan is for streams"):
        read_relation(spark, relation("id BIGINT", "", "parquet", scan="arrow", **options))
    (tmp_path / "f.csv").write_text("1\nzwei\n")
    with pytest.raises(InputError, match=r"f\.csv, a file of relation r, has a record that does not parse: .*zwei"):
        read_relation(spark, relation("id BIGINT", "", "csv", path=tmp_path / "f.csv"))
    chosen = relation("id BIGINT, twice BIGINT", "", "parquet", select="id, 2L * id AS twice", **options)
    assert read_relation(spark, chosen).to_pylist() == [{"id": 1, "twice": 2}] * 2


# ---- fingerprints ----------------------------------------------------------------------------------------------------


def test_fingerprints() -> None:
    base = declared(statement("parquet", path="x"))
    assert fingerprint(base) == "bc7cd68c885e"  # a release that changes it makes every checkpoint start afresh
    same = [
        statement("PARQUET", path="x"),
        statement("parquet", PATH="x"),
        statement("parquet", path="x", maxFilesPerTrigger=3, scan="rows", ignoreMissingFiles="true"),
        statement("parquet", path="x").replace("STREAM s", "STREAM other"),
    ]
    other = [
        statement("orc", path="x"),
        statement("parquet", path="y"),
        statement("parquet", path="x", latestFirst="true"),
        statement("parquet", path="x", select="t, a, name"),
        statement("parquet", COLUMNS.replace("INTEGER", "BIGINT"), path="x"),
        statement("parquet", COLUMNS.replace("a ", "b "), path="x"),
        statement("parquet", path="x").replace("TIME t", "TIME t LATENESS 3"),
        statement("parquet", path="x").replace("TIME t", "TIME t SEQUENCE a"),
    ]
    assert {fingerprint(declared(text)) for text in same} == {fingerprint(base)}
    assert len({fingerprint(declared(text)) for text in [*other, same[0]]}) == len(other) + 1
