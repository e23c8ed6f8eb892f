"""Bad files in the middle of a stream: one clear message, and a restart that goes on when the cause is gone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.disturbed import BAD, COLUMNS, PIECES, ROWS, Home, disturb, keep_turn, write_bytes, write_piece
from tests.pipeline.files import write_files
from windrow.errors import InputError, SetupError

GOOD = PIECES[BAD]
SCANS = pytest.mark.parametrize("scan", ["arrow", "rows"])


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def with_column(name: str, values: object) -> pa.Table:
    return GOOD.set_column(GOOD.schema.names.index(name), name, values)


def first_time(value: int | None) -> pa.Array:
    return pa.array([value, *GOOD["t"].to_pylist()[1:]], pa.int64())


def cut_short(path: Path) -> None:
    write_bytes(path, path.read_bytes()[:-100])


def damage_a_page(path: Path) -> None:
    pq.write_table(GOOD, path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content[chunk.data_page_offset + chunk.total_compressed_size - 8] ^= 0xFF
    write_bytes(path, bytes(content))


NO_PARQUET = "cannot be read as Parquet: .*; replace it and start again"
SPOILED: dict[str, tuple[Callable[[Path], None], str, str | None]] = {
    # How a file is spoiled, what the arrow scan says, and what the row path says if that is something else.
    "cut short": (cut_short, NO_PARQUET, None),
    "no Parquet": (lambda path: write_bytes(path, b"The quick brown fox jumps"), NO_PARQUET, None),
    "empty": (lambda path: write_bytes(path, b""), "is empty, which no parquet file is; replace it and start", None),
    "damaged page": (damage_a_page, NO_PARQUET, "cannot be read: .*[Cc]hecksum.*; correct or replace it and start"),
    "no column": (
        lambda path: write_piece(path, GOOD.drop_columns(["v"])),
        "^column v of stream s is not in the file .*, which has t, k; replace the file, or declare",
        None,
    ),
    "no time column": (lambda path: write_piece(path, GOOD.drop_columns(["t"])), "^column t of stream s is not", None),
    "another type": (
        lambda path: write_piece(path, with_column("v", GOOD["v"].cast(pa.string()))),
        r"^column v of stream s must be INTEGER \(Arrow int32\), the file .* has string; replace",
        r"cannot be read: .*column \[v\]\. Expected Spark type int, actual Parquet type BINARY; correct or",
    ),
    "no time": (
        lambda path: write_piece(path, with_column("t", first_time(None))),
        "time column t of stream s has 1 NULLs, .*, and start again",
        None,
    ),
    "time out of range": (
        lambda path: write_piece(path, with_column("t", first_time(2**62))),
        r"time 4611686018427387904 of stream s is out of range; .* correct or replace what is wrong",
        None,
    ),
}


@SCANS
@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_file_is_named_and_its_replacement_read(home: Home, scan: str, case: str) -> None:
    spoil, arrow, rows = SPOILED[case]
    bad = disturb(home, spoil)
    for _ in range(2):  # a restart before the cause is removed changes nothing
        message = home.fails(home.database(f", scan '{scan}'"), InputError)
        assert str(bad) in message
        assert re.search(rows if scan == "rows" and rows else arrow, message), message
    write_piece(bad, GOOD)
    assert home.goes_on(home.database(f", scan '{scan}'")).progress.rows == ROWS


@SCANS
def test_the_first_file_is_spoiled(home: Home, scan: str) -> None:
    """Its schema is asked for when the source is opened."""
    write_files(home.stream, PIECES)
    bad = home.stream / "part-0000.parquet"
    write_bytes(bad, b"The quick brown fox jumps")
    for _ in range(2):
        with pytest.raises(InputError, match=rf"^{bad}, a file of stream s, cannot be read.*; .*replace it and start"):
            home.run(home.database(f", scan '{scan}'"))
    write_piece(bad, PIECES[0])
    home.run(home.database(f", scan '{scan}'"))
    home.check_answers(PIECES)


@SCANS
def test_a_file_that_was_seen_and_is_gone(home: Home, scan: str) -> None:
    bad = disturb(home, cut_short)
    home.fails(home.database(f", scan '{scan}'"), InputError)
    bad.unlink()
    message = home.fails(home.database(f", scan '{scan}'"), InputError)
    assert message == (
        f"{bad}, a file of stream s, is gone; put it back, or set OPTIONS (ignoreMissingFiles 'true') to go on without "
        "it, and start again"
    )
    summary = home.goes_on(
        home.database(f", scan '{scan}', ignoreMissingFiles 'true'"), [*PIECES[:BAD], *PIECES[BAD + 1 :]]
    )
    assert summary.progress.rows == ROWS - GOOD.num_rows


def test_one_of_several_files_of_a_batch_is_gone(home: Home) -> None:
    bad = disturb(home, cut_short)
    home.fails(home.database(", maxFilesPerTrigger '6'"), InputError)
    bad.unlink()
    assert str(bad) in home.fails(home.database(", maxFilesPerTrigger '6'"), InputError)
    write_piece(bad, GOOD)
    home.goes_on(home.database(", maxFilesPerTrigger '6'"))


def test_a_restart_gives_the_workers_the_options_of_today(home: Home) -> None:
    disturb(home, cut_short)
    home.fails(home.database(), InputError)
    db = home.database(", ignoreMissingFiles 'true'")
    db.start(checkpoint=home.path / "state", output=home.path / "out")
    try:
        assert db._engine.streams["s"].stream.options["ignoreMissingFiles"] == "true"
    finally:
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            db.wait(60)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@SCANS
def test_a_file_that_may_not_be_read(home: Home, scan: str) -> None:
    bad = disturb(home, lambda path: path.chmod(0))
    assert "may not be read by this user; give the right" in home.fails(home.database(f", scan '{scan}'"), InputError)
    bad.chmod(0o644)
    home.goes_on(home.database(f", scan '{scan}'"))


# ---- drift that is fine ---------------------------------------------------------------------------------------------


@SCANS
@pytest.mark.parametrize("narrow", [pa.int8(), pa.uint16(), pa.int32()], ids=str)
@pytest.mark.parametrize("first", [True, False], ids=["narrow first", "wide first"])
def test_whole_numbers_of_several_widths(home: Home, scan: str, narrow: pa.DataType, first: bool) -> None:
    pieces = [
        piece.set_column(2, "v", piece["v"].cast(narrow if (number < BAD) == first else pa.int64()))
        for number, piece in enumerate(PIECES)
    ]
    write_files(home.stream, pieces)
    home.run(home.database(f", scan '{scan}', maxFilesPerTrigger '3'", columns="t BIGINT, k STRING, v BIGINT"))
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, k STRING, v BIGINT) TIME t")
    home_answers = pq.read_table(home.path / "out" / "sums")
    query = db.query("SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 30 SLIDE 10] GROUP BY k")
    for piece in PIECES:
        db.push("s", piece.set_column(2, "v", piece["v"].cast(pa.int64())))
    db.finish()
    assert sorted(map(repr, home_answers.to_pylist())) == sorted(map(repr, query.answers().to_pylist()))


@SCANS
def test_columns_may_be_more_and_in_another_order(home: Home, scan: str) -> None:
    write_files(home.stream, PIECES)
    write_piece(home.stream / "part-0002.parquet", PIECES[2].append_column("more", PIECES[2]["k"]))
    write_piece(home.stream / "part-0003.parquet", GOOD.select(["v", "k", "t"]))
    write_piece(home.stream / "part-0004.parquet", PIECES[4].rename_columns(["T", "K", "v"]))
    home.run(home.database(f", scan '{scan}'"))
    home.check_answers(PIECES)


def test_nulls_for_a_missing_column_if_the_user_wants_them(home: Home) -> None:
    disturb(home, lambda path: write_piece(path, GOOD.drop_columns(["v"])))
    home.run(home.database(", mergeSchema 'true'"))
    empty = with_column("v", pa.nulls(GOOD.num_rows, pa.int32()))
    home.check_answers([*PIECES[:BAD], empty, *PIECES[BAD + 1 :]])


# ---- text -----------------------------------------------------------------------------------------------------------


def write_text(home: Home, format_: str) -> Path:
    """The stream as text, one file per piece; gives the file in the middle."""
    home.stream.mkdir()
    for number, piece in enumerate(PIECES):
        path = home.stream / f"part-{number:04}.txt"
        path.write_text(text_of(piece, format_))
        keep_turn(path)
    return home.stream / f"part-{BAD:04}.txt"


def text_of(piece: pa.Table, format_: str) -> str:
    rows = piece.to_pylist()
    if format_ == "json":
        return "".join(f'{{"t": {row["t"]}, "k": "{row["k"]}", "v": {row["v"]}}}\n' for row in rows)
    return "t,k,v\n" + "".join(f"{row['t']},{row['k']},{row['v']}\n" for row in rows)


@pytest.mark.parametrize(
    ("format_", "line", "reason"),
    [
        ("csv", "60,host-0,many", r'has a record that does not parse: For input string: "many"; correct the file, or'),
        ("csv", "60,host-0", "has a record that does not parse: Malformed CSV record: 60,host-0; correct"),
        ("json", '{"t": 60, "k": "a", "v": "many"}', "has a record that does not parse: .*'v' and the value many"),
        ("json", '{"t": 60, "k": "a" "v": 1}', "has a record that does not parse: .*was expecting comma"),
    ],
)
def test_a_record_that_does_not_parse(home: Home, format_: str, line: str, reason: str) -> None:
    bad = write_text(home, format_)
    good = bad.read_text()
    write_bytes(bad, (good + line + "\n").encode())
    options = ", header 'true'" if format_ == "csv" else ""
    message = home.fails(home.database(options, format=format_), InputError)
    assert message.startswith(f"{bad}, a file of stream s, ") and re.search(reason, message), message
    # Either the user takes the record out, or she lets Spark do so.
    home.goes_on(home.database(f"{options}, mode 'DROPMALFORMED'", format=format_))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("t,v,k", "CSV header does not conform to the schema. Header: t, v, k"),
        ("t,k", "Number of column in CSV header is not equal .*Header length: 2, schema size: 3"),
    ],
)
def test_a_csv_header_that_changes(home: Home, header: str, reason: str) -> None:
    bad = write_text(home, "csv")
    good = bad.read_text()
    write_bytes(bad, (header + good[5:]).encode())
    message = home.fails(home.database(", header 'true'", format="csv"), InputError)
    assert message.startswith(f"{bad}, a file of stream s, cannot be read: ") and re.search(reason, message), message
    write_bytes(bad, good.encode())
    home.goes_on(home.database(", header 'true'", format="csv"))


def test_an_empty_text_file_has_no_rows_and_one_that_is_gone_is_missed(home: Home) -> None:
    bad = write_text(home, "json")
    write_bytes(bad, b"")
    write_bytes(home.stream / "part-0004.txt", b"{")
    home.fails(home.database(format="json"), InputError)
    (home.stream / "part-0004.txt").unlink()
    assert "part-0004.txt, a file of stream s, is gone" in home.fails(home.database(format="json"), InputError)
    write_bytes(home.stream / "part-0004.txt", text_of(PIECES[4], "json").encode())
    home.goes_on(home.database(format="json"), [*PIECES[:BAD], *PIECES[BAD + 1 :]])


# ---- no file at fault -----------------------------------------------------------------------------------------------


def test_a_path_that_is_not_there(home: Home) -> None:
    db = home.database()
    with pytest.raises(SetupError, match=f"^stream s: there is nothing at {home.stream}; correct the path, or create"):
        home.run(db)
    assert not (home.path / "state").exists() and not (home.path / "out").exists()
    home.stream.mkdir()
    write_files(home.stream, PIECES)
    home.run(db)
    home.check_answers(PIECES)


@pytest.mark.parametrize("format_", ["parquet", "csv", "json", "orc"])
def test_a_directory_without_files_is_an_empty_stream(home: Home, format_: str) -> None:
    home.stream.mkdir()
    summary = home.run(home.database(format=format_))
    assert (summary.ended, summary.progress.rows, summary.progress.answers) == (True, 0, 0)


def test_the_declaration_is_not_what_the_files_have(home: Home) -> None:
    write_files(home.stream, PIECES)
    for scan in ("arrow", "rows"):
        with pytest.raises(InputError, match=r"column v of stream s must be TINYINT.* has int"):
            home.run(home.database(f", scan '{scan}'", columns="t BIGINT, k STRING, v TINYINT"))
        with pytest.raises(InputError, match=r"column w of stream s is not in .* which has t, k, v"):
            home.run(home.database(f", scan '{scan}'", columns=f"{COLUMNS}, w INT"))


def test_a_year_that_nobody_means(home: Home) -> None:
    times = pa.array([datetime(2024, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us"))
    write_files(home.stream, [pa.table({"t": times})])
    db = windrow.connect(spark=home.spark)
    db.execute(f"CREATE STREAM s (t TIMESTAMP) TIME t USING parquet OPTIONS (path '{home.stream}')")
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR SLIDE 1 HOUR]")
    with pytest.raises(InputError, match=r"answers due at once .* is a timestamp wrong\? .* in .*part-0000\.parquet:"):
        db.run()


def test_code_of_the_user_that_fails(home: Home) -> None:
    write_files(home.stream, PIECES)

    def fail(batches: object) -> object:
        raise ValueError("this is not what I expected")

    frame = home.spark.readStream.schema("t bigint, k string, v int").parquet(str(home.stream))
    for stream, reason in (
        (frame.mapInArrow(fail, "t bigint"), "ValueError: this is not what I expected"),
        (frame.selectExpr("t", "CAST(k AS INT) AS v"), "The value 'host-.' of the type \"STRING\" cannot be cast"),
        (home.spark.createDataFrame([(1, "x")], "t bigint, k string").selectExpr("t", "CAST(k AS INT) AS v"), "'x'"),
    ):
        db = windrow.connect(spark=home.spark)
        db.stream("s", stream, time="t")
        db.query(f"SELECT SUM({'v' if 'v' in stream.columns else 't'}) AS n FROM s [RANGE 10 SLIDE 10]")
        with pytest.raises(windrow.Error, match=f"^stream s: .*{reason}.*; .* start again") as raised:
            db.run()
        assert isinstance(raised.value, SetupError if "ValueError" in reason else InputError)


def test_a_live_run_tells_and_goes_on_too(home: Home) -> None:
    bad = disturb(home, cut_short)
    db = home.database()
    for _ in range(2):
        db.start(checkpoint=home.path / "state", output=home.path / "out")
        with pytest.raises(InputError, match=f"{bad}, a file of stream s, cannot be read as Parquet"):
            db.wait(60)
        home.check_state()
    write_piece(bad, GOOD)
    home.goes_on(db)
