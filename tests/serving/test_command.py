"""The program as the shell sees it: help, version, usage errors, colours, signals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BAD = "CREATE STREAM s (t BIGINT) TIME t;\nCREATE QUERY q AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"


def command(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "windrow", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal shows as standard error."""
    ours, theirs = pty.openpty()
    base = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "windrow", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=base | {"TERM": "xterm-256color"} | environment,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    process.wait(60)
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("name", ["run", "check", "explain", "demo"])
def test_the_help_of_each_command_has_an_example(name: str) -> None:
    result = command(name, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"\n  windrow {name}" in result.stdout


def test_the_help_lists_the_commands_and_loads_no_spark() -> None:
    code = (
        "import sys\nfrom windrow.serving.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "assert not {'pyspark', 'duckdb', 'pandas'} & set(sys.modules), 'too much is imported'"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert all(f"\n  {name} " in result.stdout for name in ("run", "check", "explain", "demo"))


def test_version() -> None:
    import windrow

    assert command("--version").stdout == f"windrow {windrow.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-", "--format", "csv"], "--format: it needs --output DIR"),
        (["run", "-", "--format", "xml", "--output", "x"], "'xml'"),
        (["run", "-", "--trigger", "1 second"], "--trigger: it is for --live"),
        (["run", "-", "--live", "--keep-open"], "--keep-open"),
        (["run", "-", "--set", "spark.x"], "expected key=value"),
        (["run"], "SCRIPT"),
        (["explain", "-", "--format", "xml"], "'xml'"),
        (["demo", "--queries", "0"], "--queries"),
        (["walk"], "walk"),
    ],
)
def test_bad_usage_is_two_and_says_why(arguments: list[str], message: str) -> None:
    result = command(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_run_refuses_a_bad_script_before_anything_starts() -> None:
    result = command("run", "-", stdin=BAD)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: <stdin>:2:30: unknown column y; there are t\n"
        "  2 | CREATE QUERY q AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"
        "    |                              ^\n"
    )


def test_run_refuses_a_bad_script_for_machines() -> None:
    import json

    result = command("run", "-", "--json", stdin=BAD)
    assert (result.returncode, result.stderr) == (2, "")
    assert json.loads(result.stdout) == {
        "error": {"type": "BindError", "message": "unknown column y; there are t", "line": 2, "column": 30}
    }


def test_run_wants_a_query() -> None:
    result = command("run", "-", stdin="CREATE STREAM s (t BIGINT) TIME t;")
    assert result.returncode == 2
    assert result.stderr == "error: <stdin>: the script registers no query; write CREATE QUERY name AS SELECT …\n"


def test_run_of_a_missing_script() -> None:
    result = command("run", "nowhere.cql")
    assert result.returncode == 2
    assert result.stderr.startswith("error: there is no script nowhere.cql;")


def test_error_is_red_on_a_terminal_only(tmp_path: Path) -> None:
    path = tmp_path / "bad.cql"
    path.write_text(BAD)
    assert "\x1b[31merror:\x1b[0m" in on_a_terminal("check", str(path))
    assert "\x1b" not in on_a_terminal("check", str(path), NO_COLOR="1")
    assert "\x1b" not in command("check", str(path)).stderr


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "good.cql"
    stream, query = BAD.replace("SUM(y)", "SUM(t)").splitlines()
    path.write_text("\n".join([stream, *(query.replace(" q ", f" q{i} ") for i in range(200))]))
    shell = f"{sys.executable} -m windrow explain {path} | head -n 1"  # more than fits into a pipe
    result = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("── q0 ──\n", "")


WAITING = """
import os, time
from windrow.serving.interrupts import Interrupts
with Interrupts(lambda: os.write(1, b"left\\n")) as interrupts:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("stopping", interrupts.exit_code, flush=True)
        time.sleep({stopping})
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_and_the_second_leaves(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.format(stopping=60)], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"stopping {code}\n"
        process.send_signal(number)
        assert process.stdout.readline() == "left\n"
        assert process.wait(30) == code


def test_the_second_signal_leaves_whatever_fails() -> None:
    failing = WAITING.replace('os.write(1, b"left\\n")', "1 / 0")
    process = subprocess.Popen([sys.executable, "-c", failing.format(stopping=60)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        for line in ("ready\n", "stopping 130\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_one_signal_lets_the_run_end_itself() -> None:
    process = subprocess.Popen([sys.executable, "-c", WAITING.format(stopping=0)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
