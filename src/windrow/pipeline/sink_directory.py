"""A local directory of answer files that belongs to one query: opened once, published file by file, set aside.

Readers see a file completely or not at all: it grows under a hidden name, which every reader skips, and gets its name
when its bytes are on the disk. A name tells the step, so a step that was published before a crash is known by its name.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from windrow.errors import SinkError
from windrow.pipeline.sink import opening

MAX_NAME_BYTES = 150
"""Of a directory made from a query's name: leaves room for a label below the 255 bytes of most file systems."""
REPLACED = "_replaced"
"""Where answers of earlier queries go; readers skip names that begin with an underscore."""


class AnswerDirectory:
    """The directory of one query, held by a lock as long as it is open: two queries never write to the same one."""

    def __init__(self, path: Path, query: str, *, fresh: bool) -> None:
        self.path = path
        with opening(query, str(path)):
            if path.exists() and not path.is_dir():
                raise SinkError(f"query {query} writes to a directory, but {path} is a file; choose another path")
            created = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "Permission denied")
            handle = os.open(path, os.O_RDONLY)
            # Also released when a sink is forgotten without close.
            self.close = weakref.finalize(self, os.close, handle)
            try:
                self._claim(handle, query)
                found = next(iter(self.visible()), None)
                if fresh and found is not None:
                    raise SinkError(
                        f"{path} already holds answers or other files ({found.name}, …), and query {query} starts "
                        "afresh; choose another directory or remove it"
                    )
                if created:
                    sync_directory(path.parent)
                for leftover in path.glob(".part-*.tmp"):
                    leftover.unlink(missing_ok=True)
                self.sync()  # a name that a killed process gave is a published step, so it must last
            except BaseException:
                self.close()
                raise

    def _claim(self, handle: int, query: str) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SinkError(
                f"another query or another run is writing to {self.path}; give query {query} a directory of its own"
            ) from error
        except OSError:  # some network file systems have no locks; the checkpoint's own lock still guards the run
            return

    def visible(self) -> Iterable[Path]:
        """What readers of the directory see: everything but hidden names."""
        return (entry for entry in self.path.iterdir() if not entry.name.startswith((".", "_")))

    def publish(self, name: str, fill: Callable[[BinaryIO], None]) -> None:
        """Write a file and give it its name at once; a file that exists already was published before a crash."""
        if (self.path / name).exists():
            return
        try:
            self.expose(self.prepare(name, fill), name)
        except BaseException:
            with suppress(OSError):
                self._hidden(name).unlink(missing_ok=True)
            raise

    def prepare(self, name: str, fill: Callable[[BinaryIO], None]) -> Path:
        """The file under a hidden name, with its bytes on the disk."""
        hidden = self._hidden(name)
        # Buffered on purpose: a raw file may write less than it was given, and Arrow would not notice.
        with hidden.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        return hidden

    def expose(self, file: Path, name: str) -> None:
        """Give a finished file its name, durably."""
        os.replace(file, self.path / name)
        self.sync()

    def _hidden(self, name: str) -> Path:
        return self.path / f".{name}.tmp"

    def sync(self) -> None:
        """Make the names in the directory durable."""
        sync_directory(self.path)


def sync_directory(path: Path) -> None:
    """Make names that were created or changed in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Make the bytes of a file that another program wrote durable."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def local_path(path: str) -> Path | None:
    """The path as this machine knows it, or None for s3a://…, hdfs://… and the like.

    >>> str(local_path("file:///data/out")), local_path("s3a://bucket/out")
    ('/data/out', None)
    """
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path) else Path(path)


def safe_name(name: str) -> str:
    """A directory name for any text: different texts stay different, none leaves the parent or hides from readers.

    >>> safe_name("busy"), safe_name("../x"), safe_name("Köln 2"), safe_name("_a")
    ('busy', '%2E.%2Fx', 'Köln%202', '%5Fa')
    """
    kept = "".join(one if one.isalnum() or one in "-_." else _percent(one) for one in name)
    if kept.startswith((".", "_")):
        kept = _percent(kept[0]) + kept[1:]
    whole = kept.encode(errors="surrogatepass")
    if len(whole) <= MAX_NAME_BYTES:
        return kept
    # No shorter name has a ~, so a cut name is never that of another query.
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{whole[: MAX_NAME_BYTES - 33].decode(errors='ignore')}~{digest}"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="surrogatepass"))


def move_aside(path: Path, query: str, label: str) -> Path | None:
    """Move a directory with answers to <parent>/_replaced/<name>-<label>; None when there are none."""
    with opening(query, str(path)):
        if not path.is_dir() or not any(not entry.name.startswith((".", "_")) for entry in path.iterdir()):
            return None
        place = path.absolute()
        target = place.parent / REPLACED
        target.mkdir(exist_ok=True)
        wanted = f"{place.name}-{safe_name(label)}"
        free, number = target / wanted, 1
        while free.exists():
            number += 1
            free = target / f"{wanted}-{number}"
        os.rename(place, free)
        sync_directory(target)
        sync_directory(place.parent)
        return free


def remove_tree(path: Path) -> None:
    """Remove a directory and what is in it, if it is there."""
    with suppress(FileNotFoundError):
        shutil.rmtree(path)
