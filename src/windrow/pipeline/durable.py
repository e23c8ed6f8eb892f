"""File operations that survive a crash, all in one place: what returned is on the disk, and nothing is there by half.

A file or a directory is written under a temporary name, synced, renamed, and then the directory that holds it is
synced. A rename is atomic, so a reader sees all of it or nothing; the sync of the directory makes the new name survive
a power failure. Nothing here knows what is in the files.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

TEMPORARY = ".tmp-"
"""Names with this prefix are unfinished work, never data."""
READ_BYTES = 1 << 20
MAX_VECTOR = 512
"""Buffers per writev; Linux and macOS take 1024."""


def temporary(path: Path) -> Path:
    """The name under which `path` is written; always the same one, so that a second attempt replaces the first."""
    return path.with_name(TEMPORARY + path.name)


def checksum(chunks: Iterable[bytes | memoryview], start: int = 0) -> int:
    """The CRC-32 of the chunks, one after the other."""
    for chunk in chunks:
        start = zlib.crc32(chunk, start)
    return start


def file_checksum(path: Path) -> tuple[int, int]:
    """The size and the CRC-32 of a file, read piece by piece."""
    size = crc = 0
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            size += len(piece)
            crc = zlib.crc32(piece, crc)
    return size, crc


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, durably; it may exist already."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    sync_directory(path.parent)


def write_part(path: Path, chunks: Sequence[bytes | memoryview]) -> int:
    """Write and sync one file of a directory that still has its temporary name; returns the bytes written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        size = _write_all(descriptor, chunks)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size


def write_file(path: Path, chunks: Sequence[bytes | memoryview]) -> int:
    """Write a new file, all of it or nothing; returns its size."""
    unfinished = current = temporary(path)
    try:
        size = write_part(unfinished, chunks)
        os.replace(unfinished, path)
        current = path
        sync_directory(path.parent)
    except OSError:
        # The caller hears that it did not happen, so a later start should not find it either.
        remove([current])
        raise
    return size


def new_directory(path: Path) -> Path:
    """Begin a directory that will be called `path`: an empty one under its temporary name."""
    unfinished = temporary(path)
    remove([unfinished])
    os.mkdir(unfinished)
    return unfinished


def publish_directory(path: Path) -> None:
    """Give a directory begun by `new_directory`, all of whose files are synced, its name."""
    unfinished = temporary(path)
    sync_directory(unfinished)
    os.rename(unfinished, path)
    sync_directory(path.parent)


def remove(paths: Iterable[Path]) -> None:
    """Remove files and flat directories as far as possible: what stays is ignored by readers and removed next time."""
    for path in paths:
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                remove(list(path.iterdir()))
                os.rmdir(path)
            else:
                os.unlink(path)


def leftovers(directory: Path) -> list[Path]:
    """What an interrupted write left in a directory."""
    return [path for path in directory.iterdir() if path.name.startswith(TEMPORARY)]


class FileLock:
    """An exclusive lock on a file that holds the owner's process id; the kernel frees it however the owner ends."""

    def __init__(self, path: Path, descriptor: int, found: bytes | None) -> None:
        self._path = path
        self._descriptor = descriptor
        self._found = found

    @classmethod
    def take(cls, path: Path) -> FileLock | None:
        """Lock the file, which is made if it is missing; None when somebody else has it."""
        while True:
            descriptor, made = _open_lock(path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A refused start may have removed the file between our open and our lock.
                if _is_file(path, descriptor):
                    lock = cls(path, descriptor, None if made else os.pread(descriptor, 64, 0))
                    _set_content(descriptor, str(os.getpid()).encode())
                    return lock
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def release(self, *, undo: bool = False) -> None:
        """Free the lock; the file is as it was found, and with `undo` it goes if it was made by `take`."""
        with contextlib.suppress(OSError):
            if self._found is None and undo:
                os.unlink(self._path)
            else:
                _set_content(self._descriptor, self._found or b"")
        # Said explicitly: a child that is being started may hold a copy of the descriptor for a moment.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def lock_holder(path: Path) -> str:
    """Who has the lock, for a message: 'process 123'."""
    with contextlib.suppress(OSError, ValueError):
        return f"process {int(path.read_bytes())}"
    return "another process"


def _open_lock(path: Path) -> tuple[int, bool]:
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR), False
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644), True


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _set_content(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)


def _write_all(descriptor: int, chunks: Sequence[bytes | memoryview]) -> int:
    """Write every chunk without joining them; the system may take less than it was given."""
    pending = [memoryview(chunk).cast("B") for chunk in chunks if len(chunk)]
    total = sum(len(chunk) for chunk in pending)
    first = 0
    while first < len(pending):
        written = os.writev(descriptor, pending[first : first + MAX_VECTOR])
        while first < len(pending) and written >= len(pending[first]):
            written -= len(pending[first])
            first += 1
        if written:
            pending[first] = pending[first][written:]
    return total
