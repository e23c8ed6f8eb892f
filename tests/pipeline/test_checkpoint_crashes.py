"""A run killed at any moment finds the state before or after the interrupted call, and goes on.

The state of the toy run is a list of numbers: an entry adds one, a snapshot holds the list so far. Three ways to die:
in front of every single operation on the disk (with and without the loss of everything not synced), a real SIGKILL at
random moments, and random scripts.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.faulty_disk import Crash, FaultyDisk
from windrow.pipeline import durable
from windrow.pipeline.checkpoint import Checkpoint

SCRIPT = "aacaccaaKaca"
"""a: append, c: compact, K: close and open again."""


FIVE = pa.table({"row": range(5)})


def table_of(number: int) -> pa.Table | None:
    """The table of an entry; every third one has none."""
    return None if number % 3 == 0 else FIVE.append_column("number", pa.array([number] * 5))


def append(checkpoint: Checkpoint, number: int) -> None:
    """One entry."""
    checkpoint.append({"number": number}, table_of(number))


def compact(checkpoint: Checkpoint, numbers: list[int]) -> None:
    """A snapshot of all numbers, in two blobs."""
    checkpoint.compact({"size": len(numbers)}, {"numbers": json.dumps(numbers).encode(), "empty": b""})


def recovered(checkpoint: Checkpoint) -> list[int]:
    """The numbers that the snapshot and the journal give back."""
    numbers: list[int] = []
    snapshot = checkpoint.snapshot
    if snapshot is not None:
        numbers = json.loads(snapshot.blobs["numbers"])
        assert snapshot.step == len(numbers)
        assert snapshot.meta == {"size": len(numbers)}
    for entry in checkpoint.entries():
        number = entry.meta["number"]
        assert entry.table == table_of(number)
        numbers.append(number)
        assert entry.step == len(numbers)
    assert checkpoint.step == len(numbers)
    return numbers


class Run:
    """Plays a script and remembers what is certain to be durable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.certain: list[int] = []
        self.attempted: list[int] = []

    def play(self, script: str) -> None:
        """Open the checkpoint and do what the script says."""
        checkpoint = Checkpoint.open(self.path)
        for action in script:
            if action == "a":
                self.attempted = [*self.certain, 100 + len(self.certain)]
                append(checkpoint, self.attempted[-1])
                self.certain = self.attempted
            elif action == "c":
                compact(checkpoint, self.certain)
            else:
                checkpoint.close()
                checkpoint = Checkpoint.open(self.path)
                assert recovered(checkpoint) == self.certain
        checkpoint.close()


@pytest.mark.parametrize("power", ["stays", "fails"])
@pytest.mark.parametrize("torn", [False, True])
def test_killed_in_front_of_every_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool, power: str
) -> None:
    died = 0
    outcomes = set()
    for at in range(1, 1000):
        run, disk = Run(tmp_path / str(at) / "c"), FaultyDisk(at, torn=torn)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", disk)
            try:
                run.play(SCRIPT)
            except Crash:
                died += 1
                disk.die()
        if not disk.dead:
            break
        if power == "fails":
            disk.power_failure()
        monkeypatch.setattr(durable, "os", FaultyDisk())
        with Checkpoint.open(run.path) as checkpoint:
            found = recovered(checkpoint)
            assert found in (run.certain, run.attempted), f"killed in front of operation {at}"
            outcomes.add(found == run.certain)
            compact(checkpoint, found)  # under the same temporary name, if it was killed in a compaction
            append(checkpoint, 7)
            compact(checkpoint, [*found, 7])
            append(checkpoint, 8)
        with Checkpoint.open(run.path) as checkpoint:
            assert recovered(checkpoint) == [*found, 7, 8]
        names = {str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file()}
        assert not [name for name in names if ".tmp-" in name]
        assert len([name for name in names if name.startswith("journal/")]) == 1
        shutil.rmtree(run.path.parent)
    assert died > 100, "the script has that many operations"
    # A name that was not synced is lost with the power, so only without it an unfinished append can be seen.
    assert outcomes == ({True} if power == "fails" else {True, False})


def test_killed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run dies while it tidies up after the first."""
    generator = random.Random(20240607)
    for attempt in range(60):
        run = Run(tmp_path / str(attempt))
        for _ in range(3):
            disk = FaultyDisk(generator.randint(1, 60))
            with monkeypatch.context() as patch:
                patch.setattr(durable, "os", disk)
                try:
                    run.play("acaac")
                except Crash:
                    disk.die()
            monkeypatch.setattr(durable, "os", FaultyDisk())
            if generator.random() < 0.5:
                disk.power_failure()
            possible = [run.certain, run.attempted]
            with Checkpoint.open(run.path) as checkpoint:
                run.certain = run.attempted = recovered(checkpoint)
            assert run.certain in possible, f"attempt {attempt}"


# ---- a real SIGKILL -----------------------------------------------------------------------------------------------


def work_until_killed(path: str, report: Connection) -> None:
    """Append and compact as fast as possible; say which step is durable."""
    checkpoint = Checkpoint.open(path)
    numbers = recovered(checkpoint)
    report.send(len(numbers))
    while True:
        numbers.append(len(numbers))
        append(checkpoint, numbers[-1])
        report.send(len(numbers))
        if len(numbers) % 4 == 0:
            compact(checkpoint, numbers)


def last_report(receiver: Connection) -> int:
    """The last step of which the worker said that it is durable."""
    last = 0
    try:
        while True:
            last = receiver.recv()
    except EOFError:
        return last


def test_twenty_sigkills(tmp_path: Path) -> None:
    generator = random.Random(4711)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    path = tmp_path / "c"
    total = 0
    for kill in range(20):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work_until_killed, args=(str(path), sender), daemon=True)
        process.start()
        sender.close()
        assert receiver.recv() == total, "a killed process leaves no lock, and its state comes back"
        process.join(generator.uniform(0.0, 0.08))
        assert process.is_alive(), "it must not end by itself"
        process.kill()
        process.join()
        durable_steps = max(total, last_report(receiver))
        with Checkpoint.open(path) as checkpoint:
            found = recovered(checkpoint)
        assert found == list(range(len(found)))
        assert len(found) in (durable_steps, durable_steps + 1), f"kill {kill}"
        total = len(found)
    assert total > 20


# ---- random scripts -----------------------------------------------------------------------------------------------


@given(st.text(alphabet="aaacK", max_size=25), st.one_of(st.none(), st.integers(1, 150)), st.booleans(), st.booleans())
def test_any_script_any_crash(script: str, crash: int | None, torn: bool, power_fails: bool) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        run = Run(Path(directory) / "c")
        disk = FaultyDisk(crash or 0, torn=torn)
        patch.setattr(durable, "os", disk)
        try:
            run.play(script)
        except Crash:
            disk.die()
        patch.setattr(durable, "os", FaultyDisk())
        if disk.dead and power_fails:
            disk.power_failure()
        with Checkpoint.open(run.path) as checkpoint:
            found = recovered(checkpoint)
        assert found in (run.certain, run.attempted)
        run.certain = run.attempted = found
        run.play("aKcaK")
