# ruff: noqa: E501 - the cases are tables, one to a line
"""Declarations: from CREATE statements and from Arrow schemas, under names that are unique whatever their case."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.language.corpus import declared
from windrow import errors
from windrow.language.catalog import Catalog, Relation, Stream, relation_from_node, stream_from_node, stream_from_schema
from windrow.language.parse import parse_one

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int64()), ("name", pa.string())])


def create(text: str) -> Stream | Relation:
    node = parse_one(text)
    return stream_from_node(node) if text.startswith("CREATE STREAM") else relation_from_node(node)


def test_a_stream_from_its_statement() -> None:
    stream = create(
        "CREATE STREAM s (TS TIMESTAMP, n BIGINT, x DECIMAL(5, 1), name STRING) TIME ts SEQUENCE N LATENESS 2 SECONDS "
        "USING kafka OPTIONS (kafka.bootstrap.servers 'a:1', subscribe = 't', maxOffsetsPerTrigger 10, includeHeaders TRUE)"
    )
    assert (stream.time, stream.sequence, stream.lateness, stream.timestamps) == ("TS", "n", 2_000_000, True)
    assert stream.format == "kafka"
    assert stream.options == {
        "kafka.bootstrap.servers": "a:1", "subscribe": "t", "maxOffsetsPerTrigger": "10", "includeHeaders": "TRUE",
    }  # fmt: skip
    assert stream.schema == pa.schema(
        [("TS", pa.timestamp("us")), ("n", pa.int64()), ("x", pa.decimal128(5, 1)), ("name", pa.string())]
    )


def test_a_relation_from_its_statement() -> None:
    relation = create(
        "CREATE RELATION r (A INT, b VARCHAR(10)) KEY (a) NON RETROACTIVE USING csv OPTIONS ('a path' 'x')"
    )
    assert (relation.key, relation.non_retroactive, relation.format) == (("A",), True, "csv")
    assert relation.options == {"a path": "x"}
    assert not create("CREATE RELATION r (a INT)").non_retroactive


def test_a_stream_from_an_arrow_schema() -> None:
    assert stream_from_schema("s", SCHEMA, time="TS", lateness="2 seconds").lateness == 2_000_000
    assert stream_from_schema("s", SCHEMA, time="ts", lateness="1.5s").lateness == 1_500_000
    assert stream_from_schema("s", SCHEMA, time="n", lateness=5).lateness == 5
    assert stream_from_schema("s", SCHEMA, time="n", lateness="5").lateness == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": "nope"}, "stream s has no column nope to be its time column; it has ts, n, name"),
        ({"time": "nam"}, "did you mean name?"),
        ({"time": "name"}, "the time column name of stream s must be TIMESTAMP or BIGINT, but is VARCHAR"),
        ({"time": "ts", "sequence": "x"}, "no column x to be its sequence column"),
        ({"time": "ts", "lateness": "2"}, "lateness: 2 has no time unit"),
        ({"time": "n", "lateness": "2 seconds"}, "2 SECONDS has a time unit, but the time column counts BIGINT ticks"),
        ({"time": "ts", "lateness": "two seconds"}, "expected a duration such as '2 seconds', found 'two seconds'"),
        ({"time": "ts", "lateness": ""}, "expected a duration such as '2 seconds', found ''"),
        ({"time": "ts", "lateness": "2 parsecs"}, "unknown time unit PARSECS"),
        ({"time": "ts", "lateness": -1}, "must not be negative"),
        ({"time": "ts", "lateness": "-1 second"}, "must not be negative"),
    ],
)
def test_bad_arguments_for_a_schema(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(errors.BindError) as caught:
        stream_from_schema("s", SCHEMA, **arguments)
    assert message.lower() in str(caught.value).lower()
    assert caught.value.line is None


def test_bad_schemas() -> None:
    with pytest.raises(errors.BindError, match="two columns named TS"):
        stream_from_schema("s", pa.schema([("ts", pa.int64()), ("TS", pa.int64())]), time="ts")
    with pytest.raises(errors.BindError, match="_time is reserved"):
        stream_from_schema("s", pa.schema([("ts", pa.int64()), ("_time", pa.int64())]), time="ts")
    with pytest.raises(errors.BindError, match="two underscores"):
        stream_from_schema("s", pa.schema([("ts", pa.int64()), ("__ts", pa.int64())]), time="ts")


@pytest.mark.parametrize("type_", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.month_day_nano_interval()])
def test_types_of_expressions_only(type_: pa.DataType) -> None:
    with pytest.raises(
        errors.BindError, match=r"s: the column x is .*; lists, structs and intervals cannot be declared"
    ):
        stream_from_schema("s", pa.schema([("ts", pa.int64()), ("x", type_)]), time="ts")


def test_a_bad_arrow_type_names_its_column() -> None:
    with pytest.raises(errors.BindError, match="column x: Arrow type uint64 has no type in Windrow; cast it to int64"):
        stream_from_schema("s", pa.schema([("ts", pa.int64()), ("x", pa.uint64())]), time="ts")


def test_names_are_unique_whatever_their_case() -> None:
    catalog = declared()
    with pytest.raises(errors.CatalogError, match="PACKETS already exists; drop it first, or choose another name"):
        catalog.add(create("CREATE RELATION PACKETS (a INT)"))
    assert catalog.get("Packets").name == "packets"
    assert catalog.remove("PACKETS").name == "packets"
    assert catalog.get("packets") is None
    catalog.add(create("CREATE RELATION PACKETS (a INT)"))
    assert [source.name for source in catalog] == ["ticks", "hosts", "prices", "PACKETS"]


def test_what_is_missing_is_said_with_a_suggestion() -> None:
    with pytest.raises(errors.CatalogError, match="there is no stream or relation packet; did you mean packets"):
        declared().remove("packet")
    with pytest.raises(errors.CatalogError, match="nothing is declared yet, use CREATE STREAM"):
        Catalog().remove("s")
