"""The worker's side of the arrow scan: any Parquet file that fits, and a clear word about every one that does not."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipeline.local_spark import declared
from windrow.errors import InputError
from windrow.pipeline import scan
from windrow.pipeline.scan import fit, local_path, read_file

STREAM = declared("CREATE STREAM s (t BIGINT, a INTEGER, name VARCHAR) TIME t USING parquet OPTIONS (path 'x')")


def rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    return pa.table({"t": numbers, "a": pa.array(numbers % 7, pa.int32()), "name": pa.array((numbers % 3).astype(str))})


def read(path: Path | str, *columns: str, stream: scan.Stream = STREAM) -> pa.Table:
    pieces = list(read_file(str(path), stream, columns or [column.name for column in stream.columns]))
    return pa.concat_tables(pieces) if pieces else stream.schema.empty_table()


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
@pytest.mark.parametrize("name", ["plain.parquet", "b c.parquet", "b%20c.parquet", "ä#?x.parquet"])
def test_paths_as_spark_writes_them(tmp_path: Path, form: str, name: str) -> None:
    pq.write_table(rows(3), tmp_path / name)
    assert read(form.format(tmp_path / name)) == rows(3)


def test_percent_encoded_paths(tmp_path: Path) -> None:
    pq.write_table(rows(3), tmp_path / "b c.parquet")
    assert read(f"file://{tmp_path}/b%20c.parquet") == rows(3)
    assert local_path("s3a://bucket/key") is None
    assert local_path("hdfs://host:8020/a b") is None


def test_columns_come_in_declared_order(tmp_path: Path) -> None:
    pq.write_table(rows(3).select(["name", "a", "t"]).append_column("more", pa.array([1, 2, 3])), tmp_path / "f")
    assert read(tmp_path / "f", "a", "t") == rows(3).select(["t", "a"])


def test_names_in_another_case(tmp_path: Path) -> None:
    pq.write_table(rows(3).rename_columns(["T", "A", "NAME"]), tmp_path / "f")
    assert read(tmp_path / "f") == rows(3)


@pytest.mark.parametrize(
    ("group", "sizes"), [(7, [98, 98, 9]), (100, [100, 100, 5]), (150, [150, 55]), (205, [100, 100, 5])]
)
def test_pieces_of_about_one_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(scan, "PIECE_ROWS", 100)
    pq.write_table(rows(205), tmp_path / "f", row_group_size=group)
    pieces = list(read_file(str(tmp_path / "f"), STREAM, ["t", "name"]))
    assert [piece.num_rows for piece in pieces] == sizes
    assert pa.concat_tables(pieces) == rows(205).select(["t", "name"])


def test_a_file_without_rows(tmp_path: Path) -> None:
    pq.write_table(rows(0), tmp_path / "f")
    assert read(tmp_path / "f").num_rows == 0


WIDENINGS = [
    ("BIGINT", pa.array([1, None, -3], pa.int8()), [1, None, -3]),
    ("BIGINT", pa.array([1, 2**32 - 1], pa.uint32()), [1, 2**32 - 1]),
    ("INTEGER", pa.array([1, 65_535], pa.uint16()), [1, 65_535]),
    ("DOUBLE", pa.array([1.5, None], pa.float32()), [1.5, None]),
    ("DOUBLE", pa.array([2**53], pa.int64()), [2.0**53]),
    ("DECIMAL(10, 2)", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), [Decimal("1.50")]),
    ("VARCHAR", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("VARCHAR", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    ("BLOB", pa.array([b"\xff"], pa.large_binary()), [b"\xff"]),
    ("TIMESTAMP", pa.array([1_000], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1)]),
    ("TIMESTAMP", pa.array([0], pa.timestamp("ms", "UTC")), [datetime(1970, 1, 1)]),
    ("TIMESTAMP", pa.array([0], pa.timestamp("us", "Asia/Tokyo")), [datetime(1970, 1, 1)]),
    ("TIMESTAMP", pa.array([1], pa.date32()), [datetime(1970, 1, 2)]),
    ("DATE", pa.array([date(2024, 2, 29)]), [date(2024, 2, 29)]),
]


@pytest.mark.parametrize(("sql", "array", "expected"), WIDENINGS, ids=lambda value: str(value)[:20])
def test_what_fits_is_widened(tmp_path: Path, sql: str, array: pa.Array, expected: list[object]) -> None:
    stream = declared(f"CREATE STREAM s (t BIGINT, c {sql}) TIME t")
    table = pa.table({"t": pa.array(range(len(array)), pa.int64()), "c": array})
    pq.write_table(table, tmp_path / "f")
    result = read(tmp_path / "f", stream=stream)
    assert result.schema == stream.schema
    assert result["c"].to_pylist() == expected
    assert fit(table.to_batches()[0], stream, ["t", "c"]) == result


def test_timestamps_of_old_spark_reach_far_years(tmp_path: Path) -> None:
    stream = declared("CREATE STREAM s (t TIMESTAMP) TIME t")
    table = pa.table({"t": pa.array([datetime(1500, 1, 1), datetime(2900, 1, 1, microsecond=7)], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "f", use_deprecated_int96_timestamps=True)
    assert read(tmp_path / "f", stream=stream) == table


NARROWINGS = [
    ("INTEGER", pa.array([1], pa.int64())),
    ("BIGINT", pa.array(["1"])),
    ("BIGINT", pa.array([1], pa.uint64())),
    ("BIGINT", pa.array([1.0])),
    ("FLOAT", pa.array([1.0], pa.float64())),
    ("DATE", pa.array([0], pa.timestamp("us"))),
    ("DECIMAL(5, 1)", pa.array([Decimal("1.55")], pa.decimal128(5, 2))),
    ("VARCHAR", pa.array([b"a"], pa.binary())),
    ("BIGINT", pa.array([[1]], pa.list_(pa.int64()))),
]


@pytest.mark.parametrize(("sql", "array"), NARROWINGS, ids=str)
def test_what_does_not_fit_is_named(tmp_path: Path, sql: str, array: pa.Array) -> None:
    stream = declared(f"CREATE STREAM s (t BIGINT, c {sql}) TIME t")
    pq.write_table(pa.table({"t": pa.array([1], pa.int64()), "c": array}), tmp_path / "f.parquet")
    # The column is not even read: drift is found whatever the queries are.
    found = re.escape(str(array.type).partition("<")[0])
    with pytest.raises(InputError, match=rf"column c of stream s must be .*f\.parquet has {found}"):
        read(tmp_path / "f.parquet", "t", stream=stream)


def test_a_column_that_is_missing(tmp_path: Path) -> None:
    pq.write_table(rows(3).drop_columns(["name"]), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"column name of stream s is not in the file .*f\.parquet, which has t, a"):
        read(tmp_path / "f.parquet", "t")


VALUES_THAT_DO_NOT_FIT = [
    ("DOUBLE", pa.array([2**53 + 1], pa.int64())),
    ("TIMESTAMP", pa.array([1_001], pa.timestamp("ns"))),
    ("VARCHAR", pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())),
]


@pytest.mark.parametrize(("sql", "array"), VALUES_THAT_DO_NOT_FIT, ids=["inexact", "nanosecond", "no UTF-8"])
def test_values_that_do_not_fit(tmp_path: Path, sql: str, array: pa.Array) -> None:
    stream = declared(f"CREATE STREAM s (t BIGINT, c {sql}) TIME t")
    pq.write_table(pa.table({"t": pa.array([1], pa.int64()), "c": array}), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=rf"column c of .*f\.parquet, a file of stream s does not fit {sql}: "):
        read(tmp_path / "f.parquet", stream=stream)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.parquet, a file of stream s, is gone; .*ignoreMissingFiles"):
        read(tmp_path / "gone.parquet")
    patient = declared("CREATE STREAM s (t BIGINT) TIME t USING parquet OPTIONS (path 'x', ignoremissingfiles 'TRUE')")
    assert read(tmp_path / "gone.parquet", stream=patient).num_rows == 0


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -20])
def test_a_file_that_was_cut_short(tmp_path: Path, keep: int) -> None:
    whole, path = tmp_path / "whole", tmp_path / "cut.parquet"
    pq.write_table(rows(5_000), whole)
    path.write_bytes(whole.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"cut\.parquet, a file of stream s, cannot be read as Parquet: .*; replace"):
        read(path)


def test_a_damaged_page_behind_a_good_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PIECE_ROWS", 100)
    path = tmp_path / "bad.parquet"
    pq.write_table(rows(200), path, write_page_checksum=True, row_group_size=100, use_dictionary=False)
    damaged = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    damaged[chunk.data_page_offset + chunk.total_compressed_size - 8] ^= 0xFF
    path.write_bytes(damaged)
    pieces = read_file(str(path), STREAM, ["t"])
    assert next(pieces) == rows(100).select(["t"])
    with pytest.raises(InputError, match=r"bad\.parquet, a file of stream s, cannot be read as Parquet: .*checksum"):
        next(pieces)


def test_an_unknown_file_system() -> None:
    with pytest.raises(InputError, match=r"nosuch://host/f\.parquet, a file of stream s, cannot be read as Parquet"):
        read("nosuch://host/f.parquet")
