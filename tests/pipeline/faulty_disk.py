"""A disk that fails at a chosen operation: it takes the place of the `os` module in modules that write.

Every operation that changes something is counted. At the chosen one the process "dies" (a Crash, which no code may
catch for good), or the operation fails with an OSError. After a death, `power_failure` also takes away everything that
was not synced: the contents of files, and names in directories.

A `WatchedDisk` never fails: it keeps a copy of what a kill would leave, at every operation of one run, which is much
quicker than to play the run up to every one of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any


class Crash(BaseException):
    """The process was killed here."""


class FaultyDisk:
    """Passes everything on to the real `os`, until the operation number `at` (0: for ever)."""

    def __init__(self, at: int = 0, *, torn: bool = False, error: OSError | None = None) -> None:
        self.at = at
        self.count = 0
        self.dead = False
        self._torn = torn
        self._error = error
        self._paths: dict[int, Path] = {}
        self._unsynced: set[Path] = set()
        self._undo: list[tuple[Path, Callable[[], None]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _step(self) -> None:
        if self.dead:
            raise Crash
        self.count += 1
        if self.count == self.at:
            if self._error is not None:
                raise self._error
            self.dead = True
            raise Crash

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Opens a file; making one is a change of its directory."""
        new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        if flags & (os.O_CREAT | os.O_TRUNC):
            self._step()
        descriptor = os.open(path, flags, mode)
        self._paths[descriptor] = Path(path)
        if flags & os.O_TRUNC:
            self._unsynced.add(Path(path))
        if new:
            self._undo.append((Path(path).parent, lambda: Path(path).unlink()))
        return descriptor

    def close(self, descriptor: int) -> None:
        """Closes a file; the kernel does it for a dead process, too."""
        if self._paths.pop(descriptor, None) is None and self.dead:
            return  # closed with the process; the number may be somebody else's by now
        os.close(descriptor)

    def writev(self, descriptor: int, chunks: Sequence[memoryview]) -> int:
        """Writes; when torn, half of it arrives before the end."""
        self._unsynced.add(self._paths[descriptor])
        try:
            self._step()
        except (Crash, OSError):
            if self._torn and self.count == self.at:
                whole = b"".join(chunks)
                os.write(descriptor, whole[: len(whole) // 2])
            raise
        return os.writev(descriptor, chunks)

    def fsync(self, descriptor: int) -> None:
        """What was written to this file, or the names in this directory, are safe from now on."""
        self._step()
        # The real sync is left out: it makes no difference that a process can see, and takes most of the time.
        path = self._paths.get(descriptor, Path())  # a file that was not opened through here is not watched
        self._unsynced.discard(path)
        self._undo = [(place, undo) for place, undo in self._undo if place != path]

    def replace(self, old: Path, new: Path) -> None:
        """Renames a file; one that is not synced yet must not get a name that readers believe."""
        self._step()
        assert old not in self._unsynced, f"{old} is renamed before its content is synced"
        before = new.read_bytes() if new.exists() else None
        os.replace(old, new)

        def undo() -> None:
            os.replace(new, old)
            if before is not None:
                new.write_bytes(before)

        self._undo.append((new.parent, undo))

    def rename(self, old: Path, new: Path) -> None:
        """Renames a directory; everything in it must be synced."""
        self._step()
        assert all(place != old for place, _ in self._undo), f"{old} is renamed before its names are synced"
        assert all(path.parent != old for path in self._unsynced), f"{old} is renamed before its files are synced"
        os.rename(old, new)
        self._undo.append((new.parent, lambda: os.rename(new, old)))

    def mkdir(self, path: Path) -> None:
        """Makes a directory."""
        self._step()
        os.mkdir(path)
        # What is synced inside is lost with the name of the directory.
        self._undo.append((path.parent, lambda: shutil.rmtree(path)))

    def unlink(self, path: Path) -> None:
        """Removes a file."""
        self._step()
        content = path.read_bytes()
        os.unlink(path)
        self._undo.append((path.parent, lambda: path.write_bytes(content) and None))

    def rmdir(self, path: Path) -> None:
        """Removes a directory."""
        self._step()
        os.rmdir(path)
        self._undo.append((path.parent, lambda: os.mkdir(path)))

    def die(self) -> None:
        """Close what the process had open, which frees its locks."""
        self.dead = True
        for descriptor in list(self._paths):
            self.close(descriptor)

    def power_failure(self) -> None:
        """Take back everything that was not synced, newest first."""
        for path in self._unsynced:
            if path.exists():
                os.truncate(path, 0)
        for place, undo in reversed(self._undo):
            # The place is missing if a directory went away for good after its files.
            if place.exists():
                undo()


def _in_turn(act: Callable[..., Any]) -> Callable[..., Any]:
    """Sinks write in threads of their own, and a copy must see no operation half done."""

    def alone(self: WatchedDisk, *given: Any) -> Any:
        with self.turn:
            return act(self, *given)

    return alone


class WatchedDisk(FaultyDisk):
    """Copies the directory `root` into `copies` in front of every operation, and in the middle of every write."""

    def __init__(self, root: Path, copies: Path) -> None:
        super().__init__()
        self._root = root
        self._copies = copies
        self._last: object = None
        self.turn = RLock()
        self.kept: list[Path] = []

    open = _in_turn(FaultyDisk.open)
    replace = _in_turn(FaultyDisk.replace)
    rename = _in_turn(FaultyDisk.rename)
    mkdir = _in_turn(FaultyDisk.mkdir)
    unlink = _in_turn(FaultyDisk.unlink)
    rmdir = _in_turn(FaultyDisk.rmdir)
    fsync = _in_turn(FaultyDisk.fsync)

    def _step(self) -> None:
        super()._step()
        self._keep("front")

    def _keep(self, where: str) -> None:
        state = [
            (str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(self._root.rglob("*"))
        ]  # what a sync leaves is what was there before
        if state != self._last and self._root.exists():
            self._last = state
            self.kept.append(self._copies / f"{self.count}-{where}")
            shutil.copytree(self._root, self.kept[-1])

    @_in_turn
    def writev(self, descriptor: int, chunks: Sequence[memoryview]) -> int:
        """Writes in two halves."""
        self._unsynced.add(self._paths[descriptor])
        self._step()
        whole = b"".join(chunks)
        half = os.write(descriptor, whole[: len(whole) // 2])
        self._keep("torn")
        return half + os.write(descriptor, whole[half:])
