"""A run that meets something bad, and goes on when it is gone: its answers must be those of an undisturbed run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import write_files
from windrow.pipeline.checkpoint import Checkpoint
from windrow.testing import assert_same

COLUMNS = "t BIGINT, k STRING, v INT"
ROWS, FILES = 240, 6
TABLE = pa.table(
    {
        "t": pa.array([i // 2 for i in range(ROWS)], pa.int64()),
        "k": [f"host-{i % 5}" for i in range(ROWS)],
        "v": pa.array([i % 11 for i in range(ROWS)], pa.int32()),
    }
)
PIECES = [TABLE.slice(start, ROWS // FILES) for start in range(0, ROWS, ROWS // FILES)]
BAD = 3
"""The file that is spoiled: in the middle of the stream."""
QUERIES = {
    "sums": "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 30 SLIDE 10] GROUP BY k",
    "most": "SELECT MAX(v) AS v, MIN(t) AS first FROM s [RANGE 25 SLIDE 5] WHERE k <> 'host-1'",
}
NOT_FOR_USERS = re.compile(r"\n|Traceback|SQLSTATE|java|org\.apache|\w(Exception|Error)\b|\[[A-Z_]{4}|\$")


def undisturbed(pieces: list[pa.Table]) -> dict[str, pa.Table]:
    """The answers when everything is good, without Spark."""
    db = windrow.connect()
    db.execute(f"CREATE STREAM s ({COLUMNS}) TIME t")
    for name, text in QUERIES.items():
        db.query(text, name=name)
    for piece in pieces:
        db.push("s", piece)
    db.finish()
    return {query.name: query.answers() for query in db.queries()}


@dataclass(frozen=True)
class Home:
    """A directory with a stream (`in`), a checkpoint (`state`) and answers (`out`)."""

    spark: SparkSession
    path: Path

    @property
    def stream(self) -> Path:
        """The files of the stream."""
        return self.path / "in"

    def database(self, options: str = "", *, format: str = "parquet", columns: str = COLUMNS) -> windrow.Database:
        """What a new process would have: the same script, and nothing in memory."""
        db = windrow.connect(spark=self.spark)
        given = "" if "maxFiles" in options else ", maxFilesPerTrigger '1'"
        db.execute(f"CREATE STREAM s ({columns}) TIME t USING {format} OPTIONS (path '{self.stream}'{given}{options})")
        for name, text in QUERIES.items():
            db.query(text, name=name)
        return db

    def run(self, db: windrow.Database, *, finish: bool = True) -> windrow.Summary:
        """Replay with checkpoint and output."""
        return db.run(checkpoint=self.path / "state", output=self.path / "out", finish=finish)

    def fails(self, db: windrow.Database, kind: type[windrow.Error]) -> str:
        """The message of a run that fails; it is for users, and the checkpoint is whole."""
        with pytest.raises(kind) as raised:
            self.run(db)
        self.check_state()
        message = str(raised.value)
        assert not NOT_FOR_USERS.search(message.replace(str(self.path), "")), message
        return message

    def check_state(self) -> None:
        """Every entry and every blob of the checkpoint is as it was written, and nobody holds it."""
        with Checkpoint.open(self.path / "state") as checkpoint:
            assert checkpoint.snapshot is not None
            assert len(list(checkpoint.entries())) == checkpoint.step - checkpoint.snapshot.step

    def goes_on(self, db: windrow.Database, pieces: list[pa.Table] | None = None) -> windrow.Summary:
        """The run ends well, with nothing started afresh and exactly the answers of an undisturbed run."""
        summary = self.run(db)
        assert summary.ended
        assert (sorted(summary.resumed), summary.afresh) == (sorted(QUERIES), ())
        self.check_answers(PIECES if pieces is None else pieces)
        return summary

    def check_answers(self, pieces: list[pa.Table]) -> None:
        """What is in `out` is exactly what an undisturbed run gives."""
        for name, expected in undisturbed(pieces).items():
            assert_same(ds.dataset(self.path / "out" / name, format="parquet").to_table(), expected)


def write_piece(path: Path, table: pa.Table, **options: object) -> None:
    """Replace a file of a stream; Spark takes files in the order of their modification times, so that stays."""
    pq.write_table(table, path, **options)
    keep_turn(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file of a stream by these bytes."""
    path.write_bytes(content)
    keep_turn(path)


def keep_turn(path: Path) -> None:
    """Give a file the modification time that its number says."""
    number = int(re.sub(r"\D", "", path.stem))
    os.utime(path, (1_700_000_000 + number,) * 2)


def disturb(home: Home, spoil: Callable[[Path], None]) -> Path:
    """Read the beginning of the stream, then write the rest and spoil the first file of it."""
    write_files(home.stream, PIECES[:BAD])
    home.run(home.database(), finish=False)
    write_files(home.stream, PIECES[BAD:], first=BAD)
    path = home.stream / f"part-{BAD:04}.parquet"
    spoil(path)
    return path
