"""Sinks with a real Spark: it reads our files, and its own batch writers take answers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.sink_tables import COLUMNS, SCHEMA, extremes, same
from windrow.errors import SinkError
from windrow.pipeline.sink_files import FILE_FORMATS
from windrow.pipeline.sink_spark import MANIFEST, StagedSink, kafka_table
from windrow.pipeline.sinks import open_sink, set_aside, sink_spec

NUMBERS = pa.schema([("_time", pa.timestamp("us")), ("n", pa.int64())])


def numbers(*values: int) -> pa.Table:
    times = pa.array(values, pa.int64()).cast(pa.timestamp("us"))
    return pa.table({"_time": times, "n": pa.array(values, pa.int64())}, schema=NUMBERS)


def orc(path: Path, spark: SparkSession, *, fresh: bool = True, **options: str) -> StagedSink:
    spec = sink_spec("orc", {"path": str(path), "compression": "snappy", **options})
    sink = open_sink(spec, "busy", NUMBERS, lambda: spark, fresh=fresh)
    assert isinstance(sink, StagedSink)
    return sink


def stored(path: Path, spark: SparkSession) -> list[int]:
    return sorted(row["n"] for row in spark.read.orc(str(path)).collect())


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_spark_reads_our_files(tmp_path: Path, spark: SparkSession, format: str) -> None:
    table = extremes()
    sink = open_sink(sink_spec(format, {"path": str(tmp_path)}), "busy", SCHEMA, spark)
    sink.write(1, table.slice(0, 11))
    sink.write(2, table.slice(11))
    if format == "parquet":
        frame = spark.read.parquet(str(tmp_path))
        assert dict(frame.dtypes)["_time"] == "timestamp_ntz"
    else:
        types = ((name, "string" if name == "bytes" else sql) for name, (_, _, sql) in COLUMNS.items())
        schema = ", ".join(f"`{name}` {sql}" for name, sql in types)
        reader = spark.read.schema(schema)
        if format == "csv":
            frame = reader.csv(str(tmp_path), header=True, multiLine=True, escape='"', nullValue="\\N")
        else:
            frame = reader.json(str(tmp_path))
        frame = frame.selectExpr(
            *(f"unbase64(`{name}`) AS `{name}`" if name == "bytes" else f"`{name}`" for name in COLUMNS)
        )
    assert same(row.asDict() for row in frame.collect()) == same(table)


def test_orc_files_once(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark, maxRecordsPerFile="2")
    assert sink.exactly_once and sink.location == str(tmp_path)
    sink.write(1, numbers(1, 2, 3, 4, 5))
    sink.write(1, numbers(6))
    sink.write(2, numbers())
    sink.write(3, numbers(7))
    sink.close()
    orc(tmp_path, spark, fresh=False).write(3, numbers(8))
    assert names(tmp_path) == [
        *(f"part-000000000001-0000{number}.snappy.orc" for number in range(3)),
        "part-000000000003-00000.snappy.orc",
    ]
    assert stored(tmp_path, spark) == [1, 2, 3, 4, 5, 7]


def test_every_type_reaches_spark(tmp_path: Path, spark: SparkSession) -> None:
    table = extremes().append_column("lasts", pa.array([(1, 2, 3000)] * 40, pa.month_day_nano_interval()))
    table = table.append_column("nothing", pa.nulls(40))
    sink = open_sink(sink_spec("orc", {"path": str(tmp_path)}), "busy", table.schema, spark)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        sink.write(1, table)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.read.orc(str(tmp_path))
    kept = frame.drop("lasts", "nothing").withColumn("_time", frame["_time"].cast("timestamp_ntz"))
    assert same(row.asDict() for row in kept.collect()) == same(extremes())
    assert {row["lasts"] for row in frame.select("lasts").collect()} == {"1 months 2 days 3 microseconds"}
    assert dict(frame.dtypes)["nothing"] == "int"


def test_a_crash_while_spark_writes(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark)
    sink.write(1, numbers(1))
    sink.stage(2, numbers(2, 3))
    (tmp_path / ".staging-000000000002" / MANIFEST).unlink()  # as if the process had died before it
    assert stored(tmp_path, spark) == [1]
    sink.close()
    again = orc(tmp_path, spark, fresh=False)
    assert names(tmp_path) == ["part-000000000001-00000.snappy.orc"]
    again.write(2, numbers(2, 3))
    assert stored(tmp_path, spark) == [1, 2, 3]


@pytest.mark.parametrize("renamed", [0, 1, 3])
def test_a_crash_between_two_renames(tmp_path: Path, spark: SparkSession, renamed: int) -> None:
    sink = orc(tmp_path, spark, maxRecordsPerFile="2")
    sink.stage(4, numbers(1, 2, 3, 4, 5))
    staging = tmp_path / ".staging-000000000004"
    moves = json.loads((staging / MANIFEST).read_text())
    assert len(moves) == 3
    for name, final in list(moves.items())[:renamed]:
        (staging / name).rename(tmp_path / final)
    sink.close()
    again = orc(tmp_path, spark, fresh=False)
    again.write(4, numbers(1, 2, 3, 4, 5))
    assert stored(tmp_path, spark) == [1, 2, 3, 4, 5]
    assert names(tmp_path) == sorted(moves.values())


def test_a_failure_between_two_renames_is_made_good_by_the_next_call(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark, maxRecordsPerFile="1")
    sink.stage(1, numbers(1, 2))
    staging = tmp_path / ".staging-000000000001"
    name, final = next(iter(json.loads((staging / MANIFEST).read_text()).items()))
    (staging / name).rename(tmp_path / final)
    sink.write(1, numbers(1, 2))
    assert stored(tmp_path, spark) == [1, 2]
    sink.write(2, numbers(3))
    assert stored(tmp_path, spark) == [1, 2, 3]


def test_a_crash_after_the_renames(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark)
    sink.write(1, numbers(1))
    (tmp_path / ".published-000000000001").mkdir()
    sink.close()
    orc(tmp_path, spark, fresh=False).write(1, numbers(1))
    assert names(tmp_path) == ["part-000000000001-00000.snappy.orc"]


def test_a_fresh_run_publishes_nothing_of_an_earlier_one(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark)
    sink.stage(1, numbers(1))
    sink.close()
    sink = orc(tmp_path, spark, fresh=True)
    assert names(tmp_path) == []
    sink.write(1, numbers(2))
    sink.close()
    with pytest.raises(SinkError, match="already holds answers"):
        orc(tmp_path, spark, fresh=True)
    assert set_aside(sink_spec("orc", {"path": str(tmp_path)}), "busy", "1") is not None
    assert not tmp_path.exists()


def test_text_and_xml(tmp_path: Path, spark: SparkSession) -> None:
    for format in ("text", "xml"):
        spec = sink_spec(format, {"path": str(tmp_path / format), "rowTag": "row"})
        open_sink(spec, "busy", NUMBERS, spark).write(1, numbers(1, 2))
    lines = (tmp_path / "text/part-000000000001-00000.txt").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, 2]
    assert [row["n"] for row in spark.read.xml(str(tmp_path / "xml"), rowTag="row").collect()] == [1, 2]


def test_a_failed_write_leaves_nothing(tmp_path: Path, spark: SparkSession) -> None:
    sink = orc(tmp_path, spark, compression="none such")
    with pytest.raises(SinkError, match=r"the answers of query busy could not be written to .*none such.*start again"):
        sink.write(1, numbers(1))
    assert names(tmp_path) == []


def test_a_table_over_jdbc(tmp_path: Path, spark: SparkSession) -> None:
    """Derby comes with Spark: a real database in the same JVM."""
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    options = {
        "url": "jdbc:derby:memory:windrow;create=true",
        "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "dbtable": "busy",
    }
    sink = open_sink(sink_spec("JDBC", options), "busy", NUMBERS, spark)
    assert (sink.location, sink.exactly_once) == ("jdbc table busy", False)
    sink.write(1, numbers(1, 2))
    sink.write(1, numbers(1, 2))
    sink.write(2, numbers(3))
    found = spark.read.format("jdbc").options(**options).load().collect()
    assert sorted(row["n"] for row in found) == [1, 2, 3]
    changed = open_sink(sink_spec("jdbc", options), "busy", NUMBERS, spark)
    with pytest.raises(SinkError, match=r"could not be written to jdbc table busy: .*; remove the cause, and start"):
        changed.write(3, pa.table({"_time": [1], "other": [1]}))


def test_spark_is_started_only_when_there_are_answers() -> None:
    def never() -> SparkSession:
        raise AssertionError("no answers, no Spark")

    sink = open_sink(sink_spec("jdbc", {"url": "jdbc:derby:memory:none", "dbtable": "t"}), "q", NUMBERS, never)
    sink.write(1, numbers())
    sink.close()
    with pytest.raises(AssertionError):
        sink.write(2, numbers(1))


def test_formats_that_are_not_there(spark: SparkSession) -> None:
    sink = open_sink(sink_spec("parqet", {"path": "x"}), "busy", NUMBERS, spark)
    with pytest.raises(SinkError, match=r"parqet.*check the name of the format, or bring the package of parqet"):
        sink.write(1, numbers(1))
    kafka = open_sink(sink_spec("kafka", {"topic": "busy", "key": "n"}), "busy", NUMBERS, spark)
    assert (kafka.location, kafka.exactly_once) == ("kafka topic busy", False)
    with pytest.raises(SinkError, match="kafka topic busy"):
        kafka.write(1, numbers(1))


def test_what_kafka_gets() -> None:
    table = pa.table({"_time": [1, 2], "src": ["a", None], "value": [0.5, None]})
    made = kafka_table(table, "src", "q")
    assert made.column("key").to_pylist() == ["a", None]
    assert [json.loads(text) for text in made.column("value").to_pylist()] == table.to_pylist()
    assert kafka_table(table, "_time", "q").column("key").to_pylist() == ["1", "2"]
    own = pa.table({"_time": [1], "value": [b"\xff"], "topic": ["t"]})
    assert kafka_table(own, None, "q").to_pylist() == [{"value": b"\xff", "topic": "t"}]
    with pytest.raises(SinkError, match="key of query q names no column of its answer: 'dst'; there are: _time, src"):
        kafka_table(table, "dst", "q")
