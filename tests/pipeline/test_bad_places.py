"""Answers that cannot be written, checkpoints that cannot, places that are taken: one message, and nothing is lost."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.disturbed import COLUMNS, PIECES, QUERIES, ROWS, Home, undisturbed
from tests.pipeline.files import write_files
from windrow.errors import BindError, CheckpointError, Error, SetupError, SinkError
from windrow.testing import assert_same


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    found = Home(spark, tmp_path)
    write_files(found.stream, PIECES)
    return found


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """This process can write files up to a size, as on a full disk; Spark's Java process is not concerned."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ---- a full disk ----------------------------------------------------------------------------------------------------


def test_a_full_disk_at_the_sink(home: Home) -> None:
    """The answers of two queries fit, those of the third do not; afterwards each is there once."""
    many = "SELECT t, k, COUNT(*) AS n FROM s [RANGE 60 SLIDE 1] GROUP BY t, k"
    folder = home.path / "many"
    db, again = home.database(), home.database()
    for one in (db, again):
        one.execute(f"CREATE QUERY many INTO json OPTIONS (path '{folder}') AS {many}")
    with largest_file(50_000), pytest.raises(SinkError) as raised:
        home.run(db)
    assert str(raised.value) == (
        f"the answers of query many could not be written to {folder}: File too large; free some space, or raise the "
        "limit, and start again: the checkpoint has the answers"
    )
    home.check_state()
    assert [file.name for file in folder.iterdir() if file.suffix != ".json"] == []  # nothing by half
    summary = home.run(again)
    assert summary.ended and sorted(summary.resumed) == ["many", "most", "sums"]
    home.check_answers(PIECES)
    pushed = windrow.connect()
    pushed.execute(f"CREATE STREAM s ({COLUMNS}) TIME t")
    query = pushed.query(many)
    for piece in PIECES:
        pushed.push("s", piece)
    pushed.finish()
    written = [json.loads(line) for file in folder.iterdir() for line in file.read_text().splitlines()]
    assert sorted(map(repr, written)) == sorted(map(repr, query.answers().to_pylist()))


@pytest.mark.parametrize("what", ["step 1", "the snapshot of step 0"])
def test_a_full_disk_at_the_checkpoint(home: Home, what: str) -> None:
    many = "SELECT t, k, v, COUNT(*) AS n FROM s [RANGE 60 SLIDE 60] GROUP BY t, k, v"
    db = home.database(", maxFilesPerTrigger '6'")
    db.query(many, name="many")
    with largest_file(200 if "snapshot" in what else 6_000), pytest.raises(CheckpointError) as raised:
        home.run(db)
    assert str(raised.value) == (
        f"checkpoint {home.path / 'state'}: {what} could not be written ([Errno 27] File too large): remove the cause "
        "and start again; nothing is lost"
    )
    again = home.database(", maxFilesPerTrigger '6'")
    again.query(many, name="many")
    assert home.run(again).ended
    home.check_answers(PIECES)


# ---- places that are taken ------------------------------------------------------------------------------------------


def test_an_output_that_has_answers_already(home: Home) -> None:
    home.run(home.database())
    before = {path: path.read_bytes() for path in (home.path / "out").rglob("*.parquet")}
    with pytest.raises(SinkError, match=rf"^{home.path}/out/sums already holds answers .*; choose another directory"):
        home.database().run(output=home.path / "out", checkpoint=home.path / "other")
    assert {path: path.read_bytes() for path in (home.path / "out").rglob("*.parquet")} == before
    # The refused run has begun nothing, so it can begin elsewhere.
    summary = home.database().run(output=home.path / "out2", checkpoint=home.path / "other")
    assert summary.ended and summary.progress.rows == ROWS


def test_an_output_or_a_checkpoint_that_is_a_file(home: Home) -> None:
    file = home.path / "file"
    file.write_text("mine")
    with pytest.raises(SinkError, match=rf"query sums cannot write to {file}/sums: Not a directory; choose another"):
        home.database().run(output=file)
    with pytest.raises(CheckpointError, match=f"^{file} is a file; a checkpoint needs a directory of its own: choose"):
        home.database().run(checkpoint=file)
    with pytest.raises(CheckpointError, match=r"is not a Windrow checkpoint .*; choose an empty directory"):
        home.database().run(checkpoint=home.stream)
    assert file.read_text() == "mine" and len(list(home.stream.iterdir())) == len(PIECES)


@pytest.mark.parametrize(
    ("into", "kind", "reason"),
    [
        ("parquet", BindError, r"parquet needs the option path: the directory for the answers"),
        ("csv OPTIONS (paht 'x')", BindError, r"csv has no option paht; its options: path"),
        ("nosuch OPTIONS (path 'x')", SinkError, r"q writes nosuch, and Spark has no such format .* check the name"),
        ("json OPTIONS (path '{file}')", SinkError, r"q writes to a directory, but .* is a file; choose another"),
    ],
)
def test_into_what_cannot_be(home: Home, into: str, kind: type[Error], reason: str) -> None:
    (home.path / "file").write_text("mine")
    db = home.database()
    with pytest.raises(kind, match=reason):
        db.execute(f"CREATE QUERY q INTO {into.format(file=home.path / 'file')} AS {QUERIES['most']}")
        home.run(db)
    # The refused run has begun nothing: a corrected script is not a changed one.
    summary = home.run(home.database())
    assert (summary.ended, summary.resumed, summary.afresh) == (True, (), ())
    home.check_answers(PIECES)


def test_two_runs_do_not_share_a_checkpoint_or_an_output(home: Home) -> None:
    first = home.database()
    first.start(checkpoint=home.path / "state", output=home.path / "out")
    with pytest.raises(CheckpointError, match=r"state is in use by process \d+; stop it first, or choose another"):
        home.database().run(checkpoint=home.path / "state", output=home.path / "other")
    with pytest.raises(SinkError, match=r"another .* run is writing to .*/out/sums; give query sums a directory of"):
        home.database().run(checkpoint=home.path / "elsewhere", output=home.path / "out")
    # With places of its own a second run goes on beside the first, also on the same Spark.
    assert home.database().run(output=home.path / "beside").progress.rows == ROWS
    first.stop()
    home.check_state()
    home.goes_on(home.database())
    for name, expected in undisturbed(PIECES).items():
        assert_same(ds.dataset(home.path / "beside" / name, format="parquet").to_table(), expected)


# ---- what is asked for ----------------------------------------------------------------------------------------------


def test_a_trigger_that_is_no_interval(home: Home) -> None:
    db = home.database()
    for trigger in ("every tuesday", "5", "", "-1 second", "1 month"):
        with pytest.raises(SetupError, match=f"^trigger: expected an interval such as '1 second', found '{trigger}' "):
            db.start(trigger)
    assert home.run(db).ended  # the database is as good as before
    home.check_answers(PIECES)


def test_a_replay_of_a_stream_that_never_ends(home: Home) -> None:
    db = home.database()
    db.execute("CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) TIME timestamp USING rate")
    db.query("SELECT COUNT(*) AS n FROM r [RANGE 1 SECOND SLIDE 1 SECOND]")
    with pytest.raises(SetupError, match=r"^a replay reads sources to their end, and r \(rate\) never ends; use --"):
        home.run(db)


def test_a_server_that_is_not_there(home: Home) -> None:
    db = windrow.connect(spark=home.spark)
    db.execute(
        "CREATE STREAM s (timestamp TIMESTAMP, value STRING) TIME timestamp "
        "USING socket OPTIONS (host '127.0.0.1', port '1', includeTimestamp 'true')"
    )
    db.query("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND SLIDE 1 SECOND]")
    db.start()
    with pytest.raises(SetupError, match=r"^stream s: Spark could not go on: Connection refused; remove the cause and"):
        db.wait(60)


def test_a_query_that_stops_leaves_the_others(home: Home) -> None:
    deep = "SELECT MAX(t * 200000000000000000) AS x FROM s [RANGE 30 SLIDE 10]"
    for again in (False, True):
        db = home.database()
        db.query(deep, name="deep")
        summary = home.run(db)
        assert summary.ended and list(summary.stopped) == ["deep"]
        assert summary.stopped["deep"].startswith("query deep was stopped: ")
        assert ("deep" in summary.resumed) == again
    home.check_answers(PIECES)
    # The answers before it stopped are there: windows that end before the first time whose product is too large.
    kept = ds.dataset(home.path / "out" / "deep", format="parquet").to_table()
    assert len(kept) > 0 and max(kept["_time"].to_pylist()) <= 50


def test_a_sink_that_fails_without_a_checkpoint_promises_none(home: Home) -> None:
    folder = home.path / "many"
    db = home.database()
    many = "SELECT t, k, COUNT(*) AS n FROM s [RANGE 60 SLIDE 1] GROUP BY t, k"
    db.execute(f"CREATE QUERY many INTO json OPTIONS (path '{folder}') AS {many}")
    with largest_file(50_000), pytest.raises(SinkError, match="this run has no checkpoint, so it begins at the begin"):
        db.run(progress=lambda _: None)
