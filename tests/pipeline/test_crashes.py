"""A run that is killed, interrupted, or finds a damaged checkpoint: no answer is lost, none is written twice.

All through the command line, each run a process of its own. WINDROW_KILLS asks for more than 8 kills, WINDROW_SEED for
other moments.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pipeline.crash_run import (
    QUERY_COUNT,
    RUN_SECONDS,
    contents,
    digests,
    leftovers,
    run,
    said,
    session_processes,
    start,
    wait_for,
    write_readings,
    write_script,
)

KILLS = int(os.environ.get("WINDROW_KILLS", "8"))
SEED = int(os.environ.get("WINDROW_SEED", "1"))
ORPHAN_SECONDS = 20
"""So long Java and its workers may live when their Python is dead."""
MOMENTS = (
    ("ckpt/journal", 0.4),
    ("out", 0.05),
    ("ckpt/journal", 0.4),
    ("clock", 0.0),
    ("ckpt/journal", 0.1),
    ("ckpt/spark", 0.2),
    ("ckpt/journal", 0.4),
    ("ckpt/snapshots", 0.05),
)
"""In turns: a kill comes when there is something new in this folder, and up to so many seconds later."""
SHARD_MOMENTS = (
    ("ckpt/shards/spark/commits", 0.4),
    ("ckpt/shards/posts", 0.3),
    ("ckpt/shards/spark/offsets", 1.0),
    ("out/pairs", 0.05),
    ("ckpt/shards/spark/state", 0.3),
    ("ckpt/shards", 0.1),
    ("ckpt/journal", 0.4),
)
"""The same with shards."""


@dataclass(frozen=True)
class Undisturbed:
    """The input, what a run that nobody disturbs writes, and how long that takes to its first step."""

    data: Path
    expected: dict[str, list[str]]
    start_seconds: float

    def home(self, path: Path) -> Path:
        """A new place for a run on the same input."""
        write_script(path, self.data)
        return path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    root = tmp_path_factory.mktemp("undisturbed")
    write_readings(root / "data")
    write_script(root / "warm", root / "data")
    assert run(root / "warm", "--quiet") == 0, said(
        root / "warm"
    )  # kernels are compiled once, and not while we measure
    write_script(root / "home", root / "data")
    began = time.monotonic()
    with start(root / "home", "--quiet") as process:
        assert wait_for(lambda: any((root / "home/ckpt/journal").glob("*.arrow")), RUN_SECONDS)
        start_seconds = time.monotonic() - began
        assert process.wait(RUN_SECONDS) == 0, said(root / "home")
    assert said(root / "home") == ""
    expected = contents(root / "home")
    assert expected == contents(root / "warm")
    assert all(len(rows) > 20 for rows in expected.values()), {name: len(rows) for name, rows in expected.items()}
    return Undisturbed(root / "data", expected, start_seconds)


# ---- killed ---------------------------------------------------------------------------------------------------------


class Disturbed:
    """One run after the other in the same place, each of them killed, until one comes to its end."""

    def __init__(self, home: Path, start_seconds: float, chance: random.Random, *more: str) -> None:
        self.home = home
        self.options = ("--quiet", *more)
        self._start_seconds = start_seconds
        self._chance = chance
        self._dying: dict[int, float] = {}
        """Sessions whose leader was killed, and until when the rest of them may live."""

    def killed(self, place: str, longest: float) -> bool:
        """Start a run and kill it at such a moment; False if it came to its end before."""
        chance, clock = self._chance, place == "clock"
        live = chance.random() < 0.25  # such a run writes its answers at every step
        news = (lambda: False) if clock else self.news(place)
        process = start(
            self.home, *self.options, *(["--live", "--trigger", "0 seconds", "--policy", "exact"] if live else [])
        )
        # A live run at the end of its input does nothing new any more.
        patience = self._start_seconds * (chance.uniform(0, 1.5) if clock else 3 if live else 20)
        wait_for(lambda: news() or process.poll() is not None, patience, 0.002)
        time.sleep(chance.uniform(0, longest))
        if process.poll() is not None:
            assert process.returncode == 0, said(self.home)
            return False
        if chance.random() < 0.5:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._dying[process.pid] = time.monotonic() + ORPHAN_SECONDS
        return True

    def news(self, place: str) -> Callable[[], bool]:
        """Tells whether there is a file in this folder that was not there at the call, be it unfinished."""
        folder = self.home / place
        before = set(folder.rglob("*"))
        return lambda: not before.issuperset(folder.rglob("*"))

    def require_no_orphans(self, *, yet: bool) -> None:
        """Java and its workers end when their Python is dead; with `yet`, look only at those whose time has come."""
        for session, until in list(self._dying.items()):
            if yet and session_processes(session) and time.monotonic() < until:
                continue
            wait_for(lambda session=session: not session_processes(session), until - time.monotonic(), 0.1)
            alive = session_processes(session)
            for one in alive:
                os.kill(one, signal.SIGKILL)
            assert not alive, f"{len(alive)} processes lived {ORPHAN_SECONDS} s longer than the run they belonged to"
            del self._dying[session]


def require_same(home: Path, undisturbed: Undisturbed) -> None:
    found = contents(home)
    for name, rows in undisturbed.expected.items():
        assert found[name] == rows, f"{name} has {len(found[name])} rows, expected {len(rows)}; said: {said(home)}"
    assert leftovers(home) == []


@pytest.mark.parametrize(("host", "most"), [("driver", KILLS), ("executors", -(-KILLS // 4))])
def test_killed_at_any_moment(tmp_path: Path, undisturbed: Undisturbed, host: str, most: int) -> None:
    print(f"WINDROW_SEED={SEED}")
    chance = random.Random(SEED)
    kills = with_progress = ended = 0
    home = undisturbed.home(tmp_path / "0")
    moments, more = (MOMENTS, ()) if host == "driver" else (SHARD_MOMENTS, ("--shards", "2"))
    disturbed = Disturbed(home, undisturbed.start_seconds, chance, *more)
    while kills < most:
        stepped, wrote = disturbed.news("ckpt/journal"), disturbed.news("out")
        if disturbed.killed(*moments[kills % len(moments)]):
            kills += 1
            with_progress += stepped() or wrote()
            disturbed.require_no_orphans(yet=True)
        else:
            require_same(home, undisturbed)
            ended += 1
            home = disturbed.home = undisturbed.home(tmp_path / str(ended))
    print(f"{kills} kills, {with_progress} of them of a run that had gone on; {ended} runs came to their end")
    assert with_progress > kills / 2
    disturbed.require_no_orphans(yet=False)
    assert run(home, *disturbed.options) == 0, said(home)
    require_same(home, undisturbed)
    before = digests(home / "out"), digests(home / "own")
    assert run(home, *disturbed.options) == 0, said(home)
    assert (digests(home / "out"), digests(home / "own")) == before
    assert said(home) == ""


# ---- interrupted ----------------------------------------------------------------------------------------------------


def terminal(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C: a terminal sends it to every process in its foreground, Java too."""
    os.killpg(process.pid, signal.SIGINT)


def terminal_twice(process: subprocess.Popen[bytes]) -> None:
    """An impatient user."""
    terminal(process)
    time.sleep(0.02)
    terminal(process)


def supervisor(process: subprocess.Popen[bytes]) -> None:
    """A service manager ends every process of a service at once, Java too."""
    os.killpg(process.pid, signal.SIGTERM)


@pytest.mark.parametrize(
    ("interrupt", "code", "clean"),
    [
        (terminal, 130, True),
        pytest.param(subprocess.Popen.terminate, 143, True, marks=pytest.mark.slow),
        (supervisor, 143, True),
        pytest.param(terminal_twice, 130, False, marks=pytest.mark.slow),
    ],
)
def test_interrupted_in_the_middle(
    tmp_path: Path,
    undisturbed: Undisturbed,
    interrupt: Callable[[subprocess.Popen[bytes]], None],
    code: int,
    clean: bool,
) -> None:
    home = undisturbed.home(tmp_path / "home")
    with start(home) as process:
        assert wait_for(lambda: len(list((home / "ckpt/journal").glob("*.arrow"))) >= 4, RUN_SECONDS)
        interrupt(process)
        assert process.wait(60) == code, said(home)
    assert wait_for(lambda: not session_processes(process.pid), ORPHAN_SECONDS, 0.1)
    assert "Traceback" not in said(home)
    if clean:
        assert "run the same command again to go on" in said(home)
        assert leftovers(home) == []
        assert list((home / "ckpt/journal").iterdir()) == []
        assert len(list((home / "ckpt/snapshots").iterdir())) == 1
    assert run(home) == 0, said(home)
    assert f"resumed: {QUERY_COUNT} queries" in said(home)
    require_same(home, undisturbed)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nothing tells which process is Java")
def test_java_dies_alone(tmp_path: Path, undisturbed: Undisturbed) -> None:
    home = undisturbed.home(tmp_path / "home")
    with start(home, "--quiet") as process:
        assert wait_for(lambda: len(list((home / "ckpt/journal").glob("*.arrow"))) >= 4, RUN_SECONDS)
        (java,) = (one for one, parent in session_processes(process.pid).items() if parent == process.pid)
        os.kill(java, signal.SIGKILL)
        assert process.wait(60) == 1
    (error,) = (line for line in said(home).splitlines() if line.startswith("error: "))
    assert "its Java process has ended" in error
    assert run(home, "--quiet") == 0, said(home)
    require_same(home, undisturbed)


# ---- damaged --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a run that was killed in the middle: a snapshot, a journal, Spark's offsets."""
    home = undisturbed.home(tmp_path_factory.mktemp("killed") / "home")
    with start(home, "--quiet") as process:
        assert wait_for(lambda: len(list((home / "ckpt/journal").glob("*.arrow"))) >= 3, RUN_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    assert wait_for(lambda: not session_processes(process.pid), ORPHAN_SECONDS, 0.1)
    return home


def flip(file: Path) -> Path:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


def flip_journal(checkpoint: Path) -> Path:
    return flip(sorted((checkpoint / "journal").iterdir())[1])


def lose_journal(checkpoint: Path) -> Path:
    lost = sorted((checkpoint / "journal").iterdir())[1]
    lost.unlink()
    return lost


def flip_snapshot(checkpoint: Path) -> Path:
    return flip(next(checkpoint.glob("snapshots/*/blob-*")))


def lose_offsets(checkpoint: Path) -> Path:
    (folder,) = (checkpoint / "spark").iterdir()
    shutil.rmtree(folder / "offsets")
    return folder


def become_foreign(checkpoint: Path) -> Path:
    shutil.rmtree(checkpoint)
    checkpoint.mkdir()
    (checkpoint / "notes.txt").write_text("mine")
    return checkpoint


@pytest.mark.parametrize("damage", [flip_journal, lose_journal, flip_snapshot, lose_offsets, become_foreign])
def test_a_damaged_checkpoint_is_refused_and_left_alone(
    tmp_path: Path, killed: Path, damage: Callable[[Path], Path]
) -> None:
    home = tmp_path / "home"
    shutil.copytree(killed, home)
    named = damage(home / "ckpt")
    before = [digests(home / place) for place in ("ckpt", "out", "own")]
    assert run(home, "--quiet") == 1
    errors = [line for line in said(home).splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "Traceback" not in said(home), said(home)
    assert str(named) in errors[0]
    assert [digests(home / place) for place in ("ckpt", "out", "own")] == before
