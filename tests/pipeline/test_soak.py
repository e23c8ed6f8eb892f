"""A live run that goes on and on needs no more memory, threads or files than at its beginning.

Less than a minute by default; `make soak` takes half an hour (WINDROW_SOAK_SECONDS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset as ds
import pytest

import windrow
from tests.pipeline.soak import COLUMNS, QUERIES, ring
from windrow.testing import assert_same

SECONDS = float(os.environ.get("WINDROW_SOAK_SECONDS", "30"))
LONG = 240
"""From so many seconds on, caches are full and compilers are done in the second quarter: then the bounds are tight."""
SHARE, MEGABYTES = (0.10, 50) if SECONDS >= LONG else (0.30, 100)
"""What memory may grow by."""
JOURNAL_FILES = 400
"""The soak's journal is compacted at 1 MiB, in blocks of 4 KiB; a snapshot has a file per share group and some more."""

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured with /proc"),
]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    home = tmp_path_factory.mktemp("soak") / "home"
    path = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    process = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.soak", str(home), str(SECONDS)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=2 * SECONDS + 300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    print(f"{report['files']} files, {report['steps']} micro-batches, seconds per phase: {report['phases']}")
    return report, home


def quarters(report: dict[str, Any], name: str) -> tuple[float, float]:
    """The medians of the second and of the last quarter."""
    values = [one[name] for one in report["samples"]]
    quarter = len(values) // 4
    return median(values[quarter : 2 * quarter]), median(values[-quarter:])


@pytest.mark.parametrize("name", ["driver", "java", "java_heap", "workers"])
def test_memory_is_flat(soaked: tuple[dict[str, Any], Path], name: str) -> None:
    before, after = quarters(soaked[0], name)
    print(f"{name}: {before:.0f} MiB in the second quarter, {after:.0f} in the last")
    assert 0 < after <= before * (1 + SHARE) + MEGABYTES


@pytest.mark.parametrize(
    ("name", "more"), [("driver_threads", 2), ("driver_files", 5), ("java_files", 40), ("worker_count", 2)]
)
def test_threads_and_files_are_flat(soaked: tuple[dict[str, Any], Path], name: str, more: int) -> None:
    before, after = quarters(soaked[0], name)
    print(f"{name}: {before:.0f} in the second quarter, {after:.0f} in the last")
    assert after <= before + more


def test_the_checkpoint_is_bounded(soaked: tuple[dict[str, Any], Path]) -> None:
    report, home = soaked
    assert max(one["journal"] for one in report["samples"]) < JOURNAL_FILES
    assert len(list((home / "state" / "snapshots").iterdir())) == 1


def test_it_keeps_up_and_loses_nothing(soaked: tuple[dict[str, Any], Path]) -> None:
    report, home = soaked
    assert (report["late"], report["stopped"]) == (0, {})
    assert quarters(report, "backlog")[1] < 200, "the run does not keep up with its sources"
    db = windrow.connect()
    for stream in ("packets", "flows"):
        db.execute(f"CREATE STREAM {stream} ({COLUMNS}) TIME ts")
    for number, text in enumerate(QUERIES):
        db.query(text, name=f"q{number}")
    for number in range(report["files"]):
        for stream in ("packets", "flows"):
            db.push(stream, ring(number))
    for query in db.queries():
        written = ds.dataset(home / "out" / query.name, format="parquet").to_table()
        assert written.num_rows == query.answers().num_rows
        assert_same(written, query.answers())
    assert report["kept"] == db.queries()[0].answers().num_rows
    assert report["steps"] >= 10
