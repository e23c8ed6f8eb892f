"""`windrow run` and `windrow demo` on a real local Spark: what they print, write and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.serving.packets import DECLARED, write_packets
from windrow.testing import assert_same

pytestmark = pytest.mark.skipif(not hasattr(windrow.Database, "run"), reason="runs on Spark are not there yet")
EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = 20_000
QUERIES = """
CREATE QUERY load AS SELECT COUNT(*) AS packets, SUM(length) AS bytes FROM packets [RANGE 5 SECONDS SLIDE 1 SECOND];
CREATE QUERY busy AS
  SELECT src, SUM(length) AS bytes FROM packets [RANGE 10 SECONDS SLIDE 5 SECONDS]
  GROUP BY src ORDER BY bytes DESC LIMIT 3;
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    write_packets(path / "packets", ROWS, 4)
    stream = f"CREATE STREAM packets ({DECLARED}) TIME ts LATENESS 2 SECONDS\n"
    source = f"USING parquet OPTIONS (path '{path / 'packets'}', maxFilesPerTrigger 1);"
    (path / "script.cql").write_text(stream + source + QUERIES)
    overflow = (
        "CREATE QUERY deep AS SELECT SUM(length * 9000000000000000) AS x FROM packets [RANGE 5 SECONDS SLIDE 1 SECOND];"
    )
    (path / "overflow.cql").write_text(stream + source + QUERIES + overflow)
    return path


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "windrow", *arguments],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))},
    )


def command(home: Path, *arguments: str) -> tuple[int, str, str]:
    with start(home, *arguments) as process:
        stdout, stderr = process.communicate(timeout=240)
    return process.returncode, stdout, stderr


def expected(home: Path) -> dict[str, pa.Table]:
    """The same queries, fed in process."""
    db = windrow.connect()
    db.execute(f"CREATE STREAM packets ({DECLARED}) TIME ts LATENESS 2 SECONDS;" + QUERIES)
    for path in sorted((home / "packets").iterdir()):
        db.push("packets", pq.read_table(path))
    db.finish()
    return {query.name: query.answers() for query in db.queries()}


def test_a_run_writes_the_answers_and_says_so(home: Path) -> None:
    code, stdout, stderr = command(home, "run", "script.cql", "--output", "answers", "--log", "spark.log")
    assert code == 0, stderr
    assert f"rows: {ROWS:,} in " in stdout and "late: no rows\n" in stdout
    assert "output: " in stdout and "answers/<query>, of 2 queries" in stdout
    assert "\x1b" not in stdout + stderr
    for name, wanted in expected(home).items():
        assert_same(ds.dataset(home / "answers" / name, format="parquet").to_table(), wanted)


def test_a_run_for_machines(home: Path) -> None:
    code, stdout, stderr = command(home, "run", "script.cql", "--json")
    record = json.loads(stdout)
    assert code == 0
    assert (record["rows"], record["late"], record["queries"], record["ended"]) == (ROWS, {"packets": 0}, 2, True)
    states = [json.loads(line)["progress"]["state"] for line in stderr.splitlines() if line.startswith('{"progress"')]
    assert states


@pytest.mark.slow
def test_a_quiet_run_says_nothing(home: Path) -> None:
    assert command(home, "run", "script.cql", "--quiet", "--log", "quiet.log") == (0, "", "")


@pytest.mark.slow
def test_a_query_that_is_stopped_is_three(home: Path) -> None:
    code, stdout, _ = command(home, "run", "overflow.cql")
    assert code == 3
    assert "stopped: deep: " in stdout


def test_a_source_that_is_not_there_is_one_clear_error(home: Path) -> None:
    text = (home / "script.cql").read_text().replace("/packets'", "/nowhere'")
    (home / "nowhere.cql").write_text(text)
    code, stdout, stderr = command(home, "run", "nowhere.cql")
    assert (code, stdout) == (1, "")
    assert sum(line.startswith("error: ") for line in stderr.splitlines()) == 1
    assert "Traceback" not in stderr


def test_the_same_command_goes_on_from_its_checkpoint(home: Path) -> None:
    arguments = ("run", "script.cql", "--checkpoint", "state", "--output", "resumed", "--keep-open", "--json")
    first, second = (json.loads(command(home, *arguments)[1]) for _ in range(2))
    assert (first["ended"], first["resumed"], sorted(second["resumed"])) == (False, [], ["busy", "load"])


@pytest.mark.parametrize(
    ("number", "wanted"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_a_live_run_is_stopped_by_a_signal(home: Path, number: signal.Signals, wanted: int) -> None:
    output = home / f"live{wanted}"
    with start(home, "run", "script.cql", "--live", "--output", str(output), "--checkpoint", f"c{wanted}") as process:
        deadline = time.monotonic() + 180
        while not list(output.rglob("*.parquet")) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == wanted, stderr
    assert "answers: " in stdout
    assert "run the same command again to go on" in stderr
    assert "Traceback" not in stderr


def test_a_replay_that_is_interrupted_says_how_far_it_came(home: Path) -> None:
    with start(home, "run", "script.cql", "--json", "--checkpoint", "early") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith('{"progress"')
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    record = json.loads(stdout)
    assert (record["interrupted"], record["ended"]) == (True, False)
    assert "Traceback" not in stderr


def test_the_examples_are_good(home: Path) -> None:
    code, stdout, stderr = command(EXAMPLES.parent, "check", "examples/packets.cql")
    assert code == 0, stderr
    assert stdout == "examples/packets.cql: 1 stream, 6 queries in 4 share groups\n"


def test_check_and_explain_start_no_spark(home: Path) -> None:
    code = (
        "import sys\nfrom windrow.serving.cli import app\n"
        "for command in ('check', 'explain'):\n"
        "    try: app([command, 'script.cql'])\n    except SystemExit as end: assert not end.code\n"
        "assert 'pyspark' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_demo_runs_twice(home: Path) -> None:
    for written in (True, False):
        code, stdout, stderr = command(home, "demo", "--rows", "20000", "--queries", "20", "--dir", "demo")
        assert code == 0, stderr
        assert ("writing 20,000 packets" in stderr) == written
        assert "20 queries share 11 slices" in stdout
        assert "top_talkers_60s_10s: who sends the most bytes" in stdout
        assert "Try next:" in stdout


@pytest.mark.slow
def test_the_tutorial_runs(home: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / "tutorial.py"), str(home / "packets")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "── 8. Live" in result.stdout
