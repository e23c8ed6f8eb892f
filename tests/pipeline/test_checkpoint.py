"""The checkpoint store: what goes in comes out, everything doubtful is refused untouched, and one process has it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.pipeline.faulty_disk import FaultyDisk
from windrow.errors import CheckpointError, StateError
from windrow.pipeline import checkpoint as module
from windrow.pipeline import durable
from windrow.pipeline.checkpoint import Checkpoint, Entry, Snapshot

TABLE = pa.table({"pane": [1, 2, 3], "src": ["a", None, "c"]})


def fingerprint(directory: Path) -> dict[str, str]:
    """Every name below a directory with a hash of what it holds."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "directory"
        for path in sorted(directory.rglob("*"))
    }


def refused(path: Path, *words: str) -> None:
    """Opening says these words and changes nothing."""
    before = fingerprint(path)
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(path)
    for word in words:
        assert word in str(caught.value)
    assert fingerprint(path) == before


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A checkpoint with a snapshot of step 2 and the entries 3, 4, 5."""
    path = tmp_path / "filled"
    with Checkpoint.open(path) as checkpoint:
        checkpoint.append({"n": 1}, TABLE)
        checkpoint.append({"n": 2})
        checkpoint.compact({"upto": 2}, {"panes": b"\x00\x01" * 500, "queries/busy": b""})
        for n in (3, 4, 5):
            checkpoint.append({"n": n}, TABLE)
    return path


# ---- round trips --------------------------------------------------------------------------------------------------


def test_a_new_checkpoint_is_empty(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path / "deep" / "er") as checkpoint:
        assert checkpoint.path == tmp_path / "deep" / "er"
        assert (checkpoint.step, checkpoint.snapshot, list(checkpoint.entries())) == (0, None, [])
        assert (checkpoint.journal_bytes, checkpoint.snapshot_bytes, checkpoint.worth_compacting) == (0, 0, False)
    with Checkpoint.open(tmp_path / "deep" / "er") as checkpoint:
        assert checkpoint.step == 0


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost"])
def test_a_file_prefix_is_a_local_path(tmp_path: Path, prefix: str) -> None:
    with Checkpoint.open(f"{prefix}{tmp_path}/a%20b") as checkpoint:
        assert checkpoint.path == tmp_path / "a%20b"


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Checkpoint.open("here") as checkpoint:
        monkeypatch.chdir("/")
        checkpoint.append({})
    assert (tmp_path / "here" / "journal" / "000000000001.arrow").is_file()


@pytest.mark.parametrize(
    "table",
    [
        None,
        TABLE,
        TABLE.slice(0, 0),
        TABLE.slice(1, 1),
        pa.concat_tables([TABLE, TABLE.slice(2), TABLE]),
        pa.table({}),
        TABLE.replace_schema_metadata({"of": "the user"}),
        pa.table(
            {"d": pa.chunked_array([pa.array(["x", "y"]).dictionary_encode(), pa.array(["z"]).dictionary_encode()])}
        ),
        pa.table({"t": pa.array([1, 2], pa.timestamp("us", "UTC")), "l": [[1], None], "s": [{"a": 1}, {"a": None}]}),
        pa.table(
            {"nan": [float("nan"), float("inf")], "raw": [b"\xff", b""], "dec": pa.array([1, 2], pa.decimal128(38, 9))}
        ),
    ],
)
def test_an_entry_comes_back_as_it_was(tmp_path: Path, table: pa.Table | None) -> None:
    meta = {"batch": 7, "text": "τ \ud800", "nested": {"list": [1, 2.5, None, True]}}
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        assert checkpoint.append(meta, table) == 1
        assert list(checkpoint.entries()) == []
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        (entry,) = checkpoint.entries()
    assert (entry.step, entry.meta) == (1, meta)
    if table is None:
        assert entry.table is None
    else:
        assert entry.table.schema.equals(table.schema, check_metadata=True)
        # NaN is not equal to itself, so the text of the values is compared.
        assert str(entry.table.to_pylist()) == str(table.to_pylist())
        entry.table.validate(full=True)


def test_other_tools_read_a_journal_file(filled: Path) -> None:
    with pa.ipc.open_stream(filled / "journal" / "000000000003.arrow") as reader:
        assert reader.read_all().equals(TABLE)


def test_a_snapshot_replaces_what_came_before(filled: Path) -> None:
    assert sorted(os.listdir(filled / "journal")) == [f"{n:012}.arrow" for n in (3, 4, 5)]
    assert os.listdir(filled / "snapshots") == ["000000000002"]
    with Checkpoint.open(filled) as checkpoint:
        assert checkpoint.snapshot == Snapshot(2, {"upto": 2}, {"panes": b"\x00\x01" * 500, "queries/busy": b""})
        assert list(checkpoint.entries()) == [Entry(n, {"n": n}, TABLE) for n in (3, 4, 5)]
        assert checkpoint.step == 5
        assert checkpoint.append({"n": 6}) == 6
        assert len(list(checkpoint.entries())) == 3, "as found at open"
        assert checkpoint.snapshot is not None
        checkpoint.compact({"upto": 6}, {})
        assert checkpoint.journal_bytes == 0
        assert os.listdir(filled / "journal") == []
        assert os.listdir(filled / "snapshots") == ["000000000006"]
        with pytest.raises(StateError, match="was compacted"):
            _ = checkpoint.snapshot
        with pytest.raises(StateError, match="was compacted"):
            list(checkpoint.entries())
    with Checkpoint.open(filled) as checkpoint:
        assert (checkpoint.snapshot, checkpoint.step) == (Snapshot(6, {"upto": 6}, {}), 6)


def test_a_step_may_have_a_second_snapshot(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        for n in range(12):
            checkpoint.compact({"n": n}, {"b": bytes(n)})
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        assert checkpoint.snapshot == Snapshot(0, {"n": 11}, {"b": bytes(11)})
        assert checkpoint.append({}) == 1
        checkpoint.compact({}, {})
    assert os.listdir(tmp_path / "c" / "snapshots") == ["000000000001"]


def test_sizes_count_what_the_disk_holds(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        checkpoint.compact({}, {"state": bytes(100_000)})
        assert 100_000 < checkpoint.snapshot_bytes < 101_000
        for n in range(1, 4):
            checkpoint.append({})
            assert checkpoint.journal_bytes == n * 4096, "a small file takes a block"
        checkpoint.append({}, pa.table({"x": bytes(50_000)}))
        sizes = checkpoint.journal_bytes, checkpoint.snapshot_bytes
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        assert (checkpoint.journal_bytes, checkpoint.snapshot_bytes) == sizes


def test_compacting_is_worth_it_when_the_journal_outgrows_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.SMALLEST_COMPACTION == 64 * 1024 * 1024
    monkeypatch.setattr(module, "SMALLEST_COMPACTION", 3 * 4096)
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        worth = []
        for _ in range(4):
            checkpoint.append({})
            worth.append(checkpoint.worth_compacting)
        assert worth == [False, False, False, True]
        checkpoint.compact({}, {"state": bytes(5 * 4096)})
        worth = []
        for _ in range(11):
            checkpoint.append({})
            worth.append(checkpoint.worth_compacting)
        assert worth == [False] * 10 + [True], "twice the snapshot"


def test_threads_get_steps_without_gaps(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        steps: list[int] = []
        threads = [
            threading.Thread(target=lambda n=n: steps.extend(checkpoint.append({"n": n}) for _ in range(10)))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(steps) == list(range(1, 41))
    with Checkpoint.open(tmp_path / "c") as checkpoint:
        assert [entry.step for entry in checkpoint.entries()] == list(range(1, 41))


def test_folders_are_for_others(filled: Path) -> None:
    with Checkpoint.open(filled) as checkpoint:
        folder = checkpoint.folder("spark/packets-1a2b")
        assert folder == filled / "spark" / "packets-1a2b"
        assert not folder.exists()
        folder.mkdir(parents=True)
        (folder / ".tmp-offsets").write_text("not ours")
        checkpoint.compact({}, {})
        assert (folder / ".tmp-offsets").exists()
        for name in ("", ".", "journal/x", "snapshots", "lock", "windrow.json", "../x", "a/../../x", "/tmp/x"):
            with pytest.raises(CheckpointError, match="relative folder name"):
                checkpoint.folder(name)
    with Checkpoint.open(filled) as checkpoint:
        assert checkpoint.step == 5


def test_a_closed_checkpoint_takes_nothing(filled: Path) -> None:
    checkpoint = Checkpoint.open(filled)
    checkpoint.close()
    checkpoint.close()
    for call in (lambda: checkpoint.append({}), lambda: checkpoint.compact({}, {}), lambda: list(checkpoint.entries())):
        with pytest.raises(StateError, match="is closed"):
            call()


def test_meta_that_is_not_json_leaves_nothing_behind(filled: Path) -> None:
    with Checkpoint.open(filled) as checkpoint:
        before = fingerprint(filled)
        with pytest.raises(TypeError, match="JSON"):
            checkpoint.append({"n": object()})
        with pytest.raises(TypeError, match="JSON"):
            checkpoint.compact({"n": object()}, {})
        assert fingerprint(filled) == before
        assert checkpoint.append({}) == 6


# ---- refusals -----------------------------------------------------------------------------------------------------


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-0.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "data", "is not a Windrow checkpoint", "choose an empty directory")


@pytest.mark.parametrize("name", ["journal/x", "snapshots/x", "lock"])
def test_names_like_ours_do_not_make_it_ours(tmp_path: Path, name: str) -> None:
    file = tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    file.write_text("my diary")
    refused(tmp_path / "data", "is not a Windrow checkpoint")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ({"kind": "windrow checkpoint", "version": 2}, ["version 2", "reads version 1"]),
        ({"kind": "windrow checkpoint", "version": "x"}, ["version 'x'"]),
        ({"kind": "something", "version": 1}, ["is not a Windrow checkpoint", "'something'"]),
        ({"version": 1}, ["windrow.json is damaged"]),
        ([], ["windrow.json is damaged"]),
    ],
)
def test_another_marker_is_refused(filled: Path, marker: object, words: list[str]) -> None:
    (filled / "windrow.json").write_text(json.dumps(marker))
    refused(filled, *words)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_damaged_marker_is_refused(filled: Path, content: bytes) -> None:
    (filled / "windrow.json").write_bytes(content)
    refused(filled, "windrow.json is damaged", "another directory")


def test_a_missing_marker_is_refused(filled: Path) -> None:
    (filled / "windrow.json").unlink()
    refused(filled, "is not a Windrow checkpoint")


@pytest.mark.parametrize("name", ["journal", "snapshots"])
def test_a_missing_part_is_refused(filled: Path, name: str) -> None:
    shutil.rmtree(filled / name)
    refused(filled, f"{name} is damaged", "missing")


@pytest.mark.parametrize("step", [3, 4])
def test_a_gap_in_the_journal_is_refused(filled: Path, step: int) -> None:
    (filled / "journal" / f"{step:012}.arrow").unlink()
    refused(filled, f"{step:012}.arrow is damaged", "missing", f"step {step + 1}", "another directory")


def test_a_lost_snapshot_is_refused(filled: Path) -> None:
    shutil.rmtree(filled / "snapshots" / "000000000002")
    refused(filled, "000000000001.arrow is damaged", "goes on with step 3")


def test_every_truncation_of_a_journal_file_is_refused(filled: Path) -> None:
    file = filled / "journal" / "000000000005.arrow"
    whole = file.read_bytes()
    for size in [*range(0, len(whole), 61), len(whole) - 1]:
        file.write_bytes(whole[:size])
        refused(filled, "000000000005.arrow is damaged", "truncated", "another directory")
    file.write_bytes(whole + b"\0")
    refused(filled, "000000000005.arrow is damaged")


def test_every_flipped_bit_of_a_journal_file_is_refused(filled: Path) -> None:
    file = filled / "journal" / "000000000004.arrow"
    whole = file.read_bytes()
    for place in [*range(0, len(whole) - 40, 97), *range(len(whole) - 40, len(whole))]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        refused(filled, "000000000004.arrow is damaged")


def arrow_with_trailer(content: bytes) -> bytes:
    """The content with a good trailer, as only Windrow writes it."""
    return content + module.TRAILER.pack(module.MAGIC, len(content), durable.checksum([content]))


def test_a_journal_file_that_is_not_an_entry_is_refused(filled: Path) -> None:
    file, other = (filled / "journal" / f"{n:012}.arrow" for n in (4, 5))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    for content in (b"PAR1" * 100, arrow_with_trailer(b"PAR1" * 100), arrow_with_trailer(sink.getvalue().to_pybytes())):
        file.write_bytes(content)
        refused(filled, "000000000004.arrow is damaged")
    shutil.copy(other, file)
    refused(filled, "000000000004.arrow is damaged", "holds step 5")
    file.unlink()
    file.mkdir()
    refused(filled, "000000000004.arrow is damaged", "not a file")


@pytest.mark.parametrize("name", ["meta.json", "manifest.json", "blob-000000"])
def test_a_damaged_snapshot_is_refused(filled: Path, name: str) -> None:
    file = filled / "snapshots" / "000000000002" / name
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place % 7)
        file.write_bytes(flipped)
        if name == "manifest.json" and json_or_none(bytes(flipped)) == json.loads(whole):
            continue  # a blank became another blank: nothing was lost
        refused(filled, f"{name} is damaged", "another directory")
    file.write_bytes(whole[:-1])
    refused(filled, f"{name} is damaged")
    file.unlink()
    refused(filled, f"{name} is damaged", "missing")


def json_or_none(content: bytes) -> object:
    """What the JSON says, None if it is none."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def test_a_renamed_snapshot_is_refused(filled: Path) -> None:
    (filled / "snapshots" / "000000000002").rename(filled / "snapshots" / "000000000004")
    refused(filled, "manifest.json is damaged", "step")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CheckpointError, match="file"):
            Checkpoint.open(path)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize(
    "uri", ["s3://bucket/x", "hdfs://host:9000/x", "dbfs:/x", Path("s3a://bucket/x"), "file://host/x", "", "a\0b"]
)
def test_only_local_paths(uri: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="expected"):
        Checkpoint.open(uri)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that other users reach, which pytest's own is not."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_no_permission_is_refused(open_to_all: Path) -> None:
    full, empty = open_to_all / "full", open_to_all / "empty"
    empty.mkdir()
    with Checkpoint.open(full) as checkpoint:
        checkpoint.append({})
    everything = [open_to_all, empty, full, *full.rglob("*")]
    for one in everything:
        one.chmod(0o555 if one.is_dir() else 0o444)
    own_user = os.geteuid()
    try:
        if own_user == 0:
            os.seteuid(65534)  # the superuser may write everywhere
        for path in (full, empty, open_to_all / "new"):
            before = fingerprint(open_to_all)
            with pytest.raises(CheckpointError, match="no permission"):
                Checkpoint.open(path)
            assert fingerprint(open_to_all) == before
    finally:
        os.seteuid(own_user)
        for one in everything:
            one.chmod(0o755 if one.is_dir() else 0o644)


def test_a_refusal_leaves_the_lock_file_of_a_killed_process(filled: Path) -> None:
    (filled / "lock").write_text("999999999")
    (filled / "journal" / "000000000003.arrow").unlink()
    refused(filled, "missing")


def test_a_refusal_makes_no_lock_file(filled: Path) -> None:
    (filled / "lock").unlink()
    (filled / "journal" / "000000000003.arrow").unlink()
    refused(filled, "missing")
    assert not (filled / "lock").exists()


# ---- leftovers ----------------------------------------------------------------------------------------------------


def leave_unfinished_work(path: Path) -> None:
    """What processes killed while writing leave behind."""
    (path / "journal" / ".tmp-000000000006.arrow").write_bytes(b"half")
    (path / "journal" / "000000000002.arrow").write_bytes(b"included in the snapshot")
    (path / "snapshots" / ".tmp-000000000005").mkdir()
    (path / "snapshots" / ".tmp-000000000005" / "meta.json").write_text("{")
    (path / "snapshots" / "000000000001").mkdir()


def test_unfinished_work_is_ignored_and_removed_by_the_next_write(filled: Path) -> None:
    leave_unfinished_work(filled)
    before = fingerprint(filled)
    with Checkpoint.open(filled) as checkpoint:
        assert [entry.step for entry in checkpoint.entries()] == [3, 4, 5]
        assert checkpoint.snapshot is not None
    assert fingerprint(filled) == before, "opening removes nothing"
    with Checkpoint.open(filled) as checkpoint:
        checkpoint.append({"n": 6})
        assert not [path for path in filled.rglob("*") if path.name.startswith(".tmp-")]
        checkpoint.compact({}, {})
    assert os.listdir(filled / "journal") == []
    assert os.listdir(filled / "snapshots") == ["000000000006"]


def test_a_refused_checkpoint_keeps_its_unfinished_work(filled: Path) -> None:
    leave_unfinished_work(filled)
    (filled / "journal" / "000000000003.arrow").unlink()
    refused(filled, "missing")


def test_files_of_others_are_left_alone(filled: Path) -> None:
    notes = [filled / "notes.txt", filled / "journal" / "notes.txt", filled / "snapshots" / "notes.txt"]
    for note in notes:
        note.write_text("mine")
    with Checkpoint.open(filled) as checkpoint:
        checkpoint.compact({}, {})
    assert all(note.read_text() == "mine" for note in notes)


# ---- errors of the disk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["append", "compact"])
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "no space"), (errno.EDQUOT, "no space"), (errno.EIO, "remove the cause"), (errno.EROFS, "no perm")],
)
def test_a_failing_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
) -> None:
    """Whichever operation fails: a clear error, no half, and the same call works once there is space."""
    calls: dict[str, Callable[[Checkpoint], object]] = {
        "append": lambda checkpoint: checkpoint.append({"n": 3}, TABLE),
        "compact": lambda checkpoint: checkpoint.compact({"n": 3}, {"a": b"a", "b": b"b"}),
    }
    failures = 0
    for at in range(1, 100):
        path = tmp_path / str(at)
        with Checkpoint.open(path) as checkpoint:
            checkpoint.append({"n": 1})
            checkpoint.compact({"n": 1}, {})
            checkpoint.append({"n": 2})
            disk = FaultyDisk(at, torn=True, error=OSError(number, os.strerror(number)))
            with monkeypatch.context() as patch:
                patch.setattr(durable, "os", disk)
                try:
                    calls[call](checkpoint)
                except CheckpointError as error:
                    failures += 1
                    assert words in str(error)
                    assert "nothing is lost" in str(error)
                    assert isinstance(error.__cause__, OSError)
                    assert checkpoint.step == 2
                    assert not [one for one in path.rglob("*") if one.name.startswith(".tmp-")]
            if disk.count < at:
                break
            checkpoint.close()
        with Checkpoint.open(path) as checkpoint:
            assert checkpoint.step in (2, 3)
        shutil.rmtree(path)
    assert failures >= 5


def test_the_same_call_works_after_a_failure(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Checkpoint.open(filled) as checkpoint:
        for at in range(1, 30):
            with monkeypatch.context() as patch:
                patch.setattr(durable, "os", FaultyDisk(at, error=OSError(errno.ENOSPC, "full")))
                with contextlib.suppress(CheckpointError):
                    checkpoint.append({"bad": 1})
                with contextlib.suppress(CheckpointError):
                    checkpoint.compact({"bad": 1}, {"x": b"x"})
            step = checkpoint.append({"good": at})
            assert checkpoint.step == step
            checkpoint.compact({"good": at}, {"at": str(at).encode()})
    with Checkpoint.open(filled) as checkpoint:
        assert checkpoint.snapshot == Snapshot(step, {"good": 29}, {"at": b"29"})
        assert os.listdir(filled / "journal") == []


# ---- one process at a time ----------------------------------------------------------------------------------------

HOLDER = """
import sys
from windrow.pipeline.checkpoint import Checkpoint
checkpoint = Checkpoint.open(sys.argv[1])
checkpoint.append({"from": "the holder"})
print("ready", flush=True)
sys.stdin.read()
checkpoint.close()
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Another process that has the checkpoint open until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_live_process_keeps_others_out_and_a_dead_one_does_not(filled: Path) -> None:
    with start_holder(filled) as process:
        try:
            refused(filled, f"in use by process {process.pid};")
        finally:
            process.send_signal(signal.SIGKILL)
    assert (filled / "lock").read_text() == str(process.pid), "killed before it could clean up"
    with Checkpoint.open(filled) as checkpoint:
        assert [entry.meta for entry in checkpoint.entries()][-1] == {"from": "the holder"}
    with start_holder(filled) as process:
        process.communicate("")
    assert process.returncode == 0
    with Checkpoint.open(filled) as checkpoint:
        assert checkpoint.step == 7


def test_one_process_cannot_open_it_twice(filled: Path) -> None:
    with Checkpoint.open(filled) as checkpoint:
        refused(filled, f"in use by process {os.getpid()};")
        assert checkpoint.append({}) == 6


def test_a_lock_that_was_removed_meanwhile_is_taken_anew(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between open and flock a refused start may remove the lock file it made: the lock must be on the visible one."""
    real = durable._open_lock
    removed = []

    def open_then_lose(path: Path) -> tuple[int, bool]:
        result = real(path)
        if not removed:
            removed.append(path)
            path.unlink()
        return result

    monkeypatch.setattr(durable, "_open_lock", open_then_lose)
    with Checkpoint.open(filled):
        assert removed
        refused(filled, "in use by process")
