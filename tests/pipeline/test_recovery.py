"""What a restart finds on the disk after a kill at one certain moment, laid out by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.pipeline.files import TICKS_DDL, write_files
from tests.pipeline.test_host import opened, packed
from tests.random_queries import TICKS
from windrow.pipeline.offsets import check_offsets, forget_unbegun


def ticks(*times: int) -> pa.Table:
    """Rows of the stream at these times."""
    many = len(times)
    values = {"t": times, "a": [1] * many, "b": times, "x": [0.5] * many, "s": ["u"] * many, "f": [True] * many}
    return pa.table({**values, "d": [0] * many}, schema=TICKS)


def test_late_rows_that_came_with_no_answer_are_kept(tmp_path: Path) -> None:
    texts = ["SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 100]"]
    host, _, _ = opened(tmp_path, texts)
    for number, piece in enumerate([ticks(50), ticks(2, 3)]):
        host.take("s", number, packed(host, [piece]), flush=False)
    host.close()
    host, folder, _ = opened(tmp_path, texts)
    host.close()
    host, folder, _ = opened(tmp_path, texts)  # by now from a snapshot
    host.close()
    assert [row.split(",")[0] for row in folder.contents()["_late/s"]] == ["2", "3"]


# ---- Spark was killed when it had chosen the files of a micro-batch, and before it began it --------------------------


def replay(spark: SparkSession, root: Path, data: Path, *, finish: bool) -> None:
    with windrow.connect(spark=spark) as db:
        db.execute(
            f"CREATE STREAM s ({TICKS_DDL}) TIME t LATENESS 1 USING parquet "
            f"OPTIONS (path '{data}', maxFilesPerTrigger 1);"
            "CREATE QUERY q AS SELECT COUNT(*) AS n, MAX(t) AS last FROM s [RANGE 10 SLIDE 10]"
        )
        db.run(checkpoint=root / "checkpoint", output=root / "out", format="csv", finish=finish)


def answers(root: Path) -> list[str]:
    files = sorted((root / "out/q").glob("part-*"))
    return [line for file in files for line in file.read_text().splitlines()[1:]]


def test_files_of_a_batch_that_was_not_begun_are_no_part_of_the_next(tmp_path: Path, spark: SparkSession) -> None:
    pieces = [ticks(1, 2), ticks(11, 12), ticks(31, 32), ticks(15, 33)]  # 15 is late, unless it comes together with 32
    write_files(tmp_path / "data", pieces)
    replay(spark, tmp_path / "whole", tmp_path / "data", finish=True)
    write_files(tmp_path / "grown", pieces[:2])
    replay(spark, tmp_path / "cut", tmp_path / "grown", finish=False)
    write_files(tmp_path / "grown", pieces[2:], first=2)
    (folder,) = (tmp_path / "cut/checkpoint/spark").iterdir()
    chosen = (tmp_path / "grown/part-0002.parquet").as_uri()
    entry = f'v1\n{{"path":"{chosen}","timestamp":1700000002000,"batchId":2}}'
    (folder / "sources/0/2").write_text(entry)
    replay(spark, tmp_path / "cut", tmp_path / "grown", finish=True)
    assert "2" in {file.name for file in (folder / "sources/0").iterdir()}
    assert len(list((folder / "offsets").glob("[0-9]*"))) == 4
    assert answers(tmp_path / "cut") == answers(tmp_path / "whole") != []


def laid_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


LISTED = 'v1\n{"path":"file:///a","timestamp":1,"batchId":7}'
FIVE, SIX, EIGHT = (f'v1\n{{}}\n{{"logOffset":{number}}}' for number in (5, 6, 8))


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        ({"sources/0/0": LISTED, "sources/0/.0.crc": "", "sources/1/0": ""}, {"sources/0/0", "sources/0/.0.crc"}),
        ({"offsets/3": FIVE, "sources/0/5": LISTED, "sources/0/6": LISTED}, {"sources/0/6"}),
        ({"offsets/3": EIGHT, "sources/0/9.compact": LISTED}, {"sources/0/9.compact"}),
        ({"offsets/9": FIVE, "offsets/10": SIX, "sources/0/6": LISTED}, set()),
        ({"offsets/3": 'v1\n{}\n-\n{"t":{"0":4}}', "sources/0/0": LISTED, "sources/1/0": LISTED}, {"sources/0/0"}),
        ({"offsets/3": "v2\nwhatever", "sources/0/6": LISTED}, set()),
        ({"offsets/3": FIVE, "sources/0/.7.x.tmp": LISTED}, set()),
    ],
)  # fmt: skip
def test_only_files_beyond_the_newest_offsets_are_forgotten(
    tmp_path: Path, found: dict[str, str], gone: set[str]
) -> None:
    forget_unbegun(laid_out(tmp_path, found))
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()} == found.keys() - gone


@pytest.mark.parametrize(("done", "fits"), [(1, False), (2, True), (3, True), (4, False)])
def test_offsets_must_fit_the_journal(tmp_path: Path, done: int, fits: bool) -> None:
    laid_out(tmp_path, {"offsets/2": "", "offsets/3": "", "offsets/.4.tmp": "", "commits/2": ""})
    if fits:
        check_offsets(tmp_path, done)
    else:
        with pytest.raises(windrow.CheckpointError, match=f"does not fit the journal.*up to {done}"):
            check_offsets(tmp_path, done)
