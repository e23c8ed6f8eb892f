"""What a sink may be asked for, where files go, who may write there, and what the terminal shows."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.sink_tables import SCHEMA, extremes
from windrow.errors import Error, SinkError
from windrow.pipeline.sinks import SinkSpec, open_sink, output_spec, set_aside, sink_spec

NUMBERS = pa.schema([("_time", pa.int64()), ("n", pa.int64())])
TABLE = pa.table({"_time": [1, 2, 30], "n": [10, None, -5]}, schema=NUMBERS)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# ---- specs -------------------------------------------------------------------------------------------------------


def test_specs_are_lower_case_and_survive_json() -> None:
    for spec in (
        sink_spec("Parquet", {"PATH": "out", "compression": "snappy"}),
        sink_spec("memory", {}),
        sink_spec("KAFKA", {"kafka.bootstrap.servers": "a:9092", "topic": "t"}),
    ):
        assert spec.format == spec.format.lower()
        assert SinkSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert sink_spec("csv", {"PATH": "out"}).options == {"path": "out"}


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("parquet", {}, "parquet needs the option path: the directory for the answers"),
        ("csv", {"path": "  "}, "csv needs the option path"),
        ("json", {"path": "x", "indent": "2"}, "json has no option indent; its options: path"),
        ("parquet", {"path": "x", "codec": "a"}, "parquet has no option codec; its options: path, compression"),
        (
            "parquet",
            {"path": "x", "compression": "lzo"},
            "parquet is one of zstd, snappy, none, not 'lzo'",
        ),
        ("memory", {"rows": "1"}, "memory has no option rows; its options: none"),
        ("console", {"rows": "many"}, "the option rows of console is a whole number from 1 on, not 'many'"),
        ("console", {"rows": "0"}, "from 1 on, not '0'"),
        ("csv", {"path": "s3a://bucket/x"}, "csv answers are written to a directory of this machine, but path is s3a:"),
        (" ", {}, "INTO needs a format: parquet, csv, json, console, memory, noop, or a batch writer of Spark"),
    ],
)
def test_what_no_sink_can_do_is_refused(format: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(SinkError) as caught:
        sink_spec(format, options)
    assert message in str(caught.value)


def test_output_is_a_file_format() -> None:
    assert output_spec(Path("out"), "busy", "CSV") == SinkSpec("csv", {"path": "out/busy"})
    with pytest.raises(SinkError, match="--format is one of parquet, csv, json, not 'orc'"):
        output_spec(Path("out"), "busy", "orc")


def test_a_path_may_have_the_scheme_of_files(tmp_path: Path) -> None:
    sink = open_sink(sink_spec("csv", {"path": f"file://{tmp_path}/x"}), "q", NUMBERS, None)
    sink.write(1, TABLE)
    assert sink.location == f"{tmp_path}/x"
    assert list(files(tmp_path)) == ["x/part-000000000001.csv"]


# ---- names -------------------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=300) | st.sampled_from(
    [
        "..",
        ".",
        "../../x",
        "/etc",
        "a/b",
        "a\\b",
        "a%2Fb",
        "_hidden",
        ".hidden",
        "_replaced",
        "a=1",
        "x*",
        "~",
        "é",
        "é",
    ]
)


@given(first=NAMES, second=NAMES)
def test_any_name_is_one_safe_directory(first: str, second: str) -> None:
    paths = []
    for name in (first, second):
        path = Path(output_spec(Path("/data/out"), name, "json").options["path"])
        assert path.parent == Path("/data/out")
        assert os.path.normpath(path) == str(path)
        assert not path.name.startswith((".", "_")) and len(path.name.encode()) <= 150
        paths.append(path)
    assert (paths[0] == paths[1]) == (first == second)


def test_long_names_stay_different(tmp_path: Path) -> None:
    for name in ("x" * 400, "x" * 401, "ü" * 300):
        spec = output_spec(tmp_path, name, "csv")
        open_sink(spec, name, NUMBERS, None).write(1, TABLE)
        assert set_aside(spec, name, "l" * 100) is not None
    assert len(list((tmp_path / "_replaced").iterdir())) == 3


# ---- directories ---------------------------------------------------------------------------------------------------


def test_a_fresh_run_refuses_a_directory_with_answers(tmp_path: Path) -> None:
    spec = sink_spec("csv", {"path": str(tmp_path)})
    open_sink(spec, "q", NUMBERS, None).write(1, TABLE)
    (tmp_path / ".part-000000000002.csv.tmp").write_text("unfinished")
    before = files(tmp_path)
    with pytest.raises(SinkError, match=r"already holds answers.*choose another directory or remove it"):
        open_sink(spec, "q", NUMBERS, None, fresh=True)
    assert files(tmp_path) == before
    open_sink(spec, "q", NUMBERS, None, fresh=False).close()
    assert list(files(tmp_path)) == ["part-000000000001.csv"]


def test_a_fresh_run_refuses_files_that_readers_would_mix_with_answers(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b")
    with pytest.raises(SinkError, match=r"other\.csv"):
        open_sink(sink_spec("csv", {"path": str(tmp_path)}), "q", NUMBERS, None)
    (tmp_path / "other.csv").rename(tmp_path / ".hidden")
    open_sink(sink_spec("csv", {"path": str(tmp_path)}), "q", NUMBERS, None).close()


def test_a_directory_has_one_writer(tmp_path: Path) -> None:
    spec = sink_spec("json", {"path": str(tmp_path / "out")})
    first = open_sink(spec, "a", NUMBERS, None)
    with pytest.raises(SinkError, match=r"another query or another run is writing to .*; give query b a directory"):
        open_sink(spec, "b", NUMBERS, None, fresh=False)
    first.close()
    first.close()
    open_sink(spec, "b", NUMBERS, None, fresh=False).close()


def test_places_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SinkError, match=r"query q writes to a directory, but .*file is a file; choose another path"):
        open_sink(sink_spec("csv", {"path": str(tmp_path / "file")}), "q", NUMBERS, None)
    with pytest.raises(SinkError, match=r"query q cannot write to .*: Not a directory; choose another path"):
        open_sink(sink_spec("csv", {"path": str(tmp_path / "file/below")}), "q", NUMBERS, None)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SinkError, match="Permission denied; make the place writable"):
        open_sink(sink_spec("csv", {"path": str(tmp_path)}), "q", NUMBERS, None)


def test_set_aside_keeps_every_answer(tmp_path: Path) -> None:
    spec = output_spec(tmp_path, "busy", "csv")
    assert set_aside(spec, "busy", "1") is None
    targets = []
    for step in (1, 2):
        sink = open_sink(spec, "busy", NUMBERS, None)
        sink.write(step, TABLE)
        sink.close()
        targets.append(set_aside(spec, "busy", "run 1"))
    replaced = tmp_path / "_replaced"
    assert targets == [replaced / "busy-run%201", replaced / "busy-run%201-2"]
    assert [list(files(target)) for target in targets if target] == [
        ["part-000000000001.csv"],
        ["part-000000000002.csv"],
    ]
    open_sink(spec, "busy", NUMBERS, None).close()  # the place is free again
    assert set_aside(spec, "busy", "empty") is None
    assert set_aside(sink_spec("console", {}), "busy", "x") is None
    assert set_aside(sink_spec("kafka", {"topic": "t"}), "busy", "x") is None


# ---- console and memory ----------------------------------------------------------------------------------------------


def test_plain_text_when_stdout_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink(sink_spec("console", {"rows": "2"}), "busy", NUMBERS, None)
    sink.write(1, TABLE)
    sink.write(1, TABLE)
    sink.write(2, TABLE.slice(0, 0))
    assert capsys.readouterr().out.splitlines() == [
        "busy",
        "_time     n",
        "-----  ----",
        "    1    10",
        "    2  NULL",
        "… and 1 more row",
    ]
    assert (sink.location, sink.exactly_once) == ("console", False)


def test_values_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"_time": [1, 2, 3], "t": ["\x1b[31mred\n", "日本", "[bold]x[/]"]})
    open_sink(sink_spec("console", {}), "q\x07", table.schema, None).write(1, table)
    assert capsys.readouterr().out.splitlines() == [
        "q\\x07",
        "_time  t",
        "-----  -------------",
        "    1  \\x1b[31mred\\n",
        "    2  日本",
        "    3  [bold]x[/]",
    ]


def test_every_type_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    open_sink(sink_spec("console", {"rows": "100"}), "q", SCHEMA, None).write(1, extremes())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 43
    assert "9223372036854775807" in lines[3]


def test_a_drawn_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        table = pa.table({"_time": [1, 2], "t": ["[bold]x[/]", "y"]})
        open_sink(sink_spec("console", {"rows": "1"}), "busy", table.schema, None).write(1, table)
        terminal.flush()
        shown = os.read(master, 100_000).decode()
    os.close(master)
    assert all(part in shown for part in ("busy", "[bold]x[/]", "┃", "… and 1 more row"))


def test_a_terminal_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    table = pa.table({"_time": [1], "t": ["é"]})
    open_sink(sink_spec("console", {}), "q", table.schema, None).write(1, table)
    assert b"\\xe9" in raw.getvalue()


def test_memory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = open_sink(sink_spec("memory", {}), "q", NUMBERS, None)
    sink.write(1, TABLE)
    sink.close()
    assert sink.location == "memory" and files(tmp_path) == {}


def test_a_spark_format_needs_spark() -> None:
    with pytest.raises(Error, match="query q writes orc, which needs Spark"):
        open_sink(sink_spec("orc", {"path": "x"}), "q", NUMBERS, None)
