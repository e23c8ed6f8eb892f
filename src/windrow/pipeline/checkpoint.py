"""The checkpoint of a run: a journal of everything that happened, and now and then a snapshot that replaces it.

The engine is deterministic, so the newest snapshot and the journal entries after it give back exactly its state. An
entry is durable before it takes effect; killed between any two system calls, a run finds either all of an entry or of
a snapshot, or nothing of it. Only what happened since the last snapshot is ever written.

    windrow.json                    what this directory is
    lock                            who is using it
    journal/000000000012.arrow      step 12: an Arrow IPC stream, and a trailer with its size and CRC-32
    snapshots/000000000012/         all steps up to 12: meta.json, one file per blob, manifest.json with their CRC-32
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from windrow.errors import CheckpointError, StateError
from windrow.pipeline import durable

KIND = "windrow checkpoint"
VERSION = 1
MARKER, LOCK, JOURNAL, SNAPSHOTS = "windrow.json", "lock", "journal", "snapshots"
META, MANIFEST = "meta.json", "manifest.json"
ENTRY_KEY = b"windrow.entry"
"""Where the Arrow schema of a journal file keeps the step and the meta of its entry."""
TRAILER = struct.Struct("<8sQI")
"""Ends a journal file: a magic word, the size of the IPC stream before it, and the CRC-32 of that stream."""
MAGIC = b"WINDROWJ"
BLOCK = 4096
"""A file takes whole blocks of the disk: without counting them, a journal of tiny entries would grow for ever."""
SMALLEST_COMPACTION = 64 << 20
_JOURNAL_NAME = re.compile(r"(\d{12})\.arrow")
_SNAPSHOT_NAME = re.compile(r"(\d{12})(?:\.(\d+))?")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class Entry:
    """One event of a run: a batch with its table, or something else that `meta` (JSON) tells."""

    step: int
    meta: dict[str, Any]
    table: pa.Table | None


@dataclass(frozen=True)
class Snapshot:
    """The state after all entries up to `step`."""

    step: int
    meta: dict[str, Any]
    blobs: dict[str, bytes]


class Checkpoint:
    """A checkpoint directory that this process has to itself, until `close` or its end.

    Read `snapshot` and `entries()` first, then go on with `append` and `compact`. An append costs one write and two
    syncs; a compaction costs the size of the state. `append` and `compact` may be called from any thread.
    """

    def __init__(self, path: Path, lock: durable.FileLock) -> None:
        """Use `Checkpoint.open`: here the directory is locked already and known to be a checkpoint."""
        self.path = path
        self._lock: durable.FileLock | None = lock
        self._mutex = threading.Lock()
        self._base = _newest_snapshot(path)
        self._loaded: Snapshot | None = None
        self._compacted = False
        self.snapshot_bytes = 0 if self._base is None else _verified_size(self._base)
        self._first = 1 if self._base is None else _snapshot_order(self._base)[0] + 1
        self._last = self._first - 1
        self.journal_bytes = 0
        for step in _journal_steps(path, self._first):
            file = _journal_file(path, step)
            self.journal_bytes += _on_disk(_read_entry(file, step)[1])
            self._last = step
        self.step = self._last
        """The last step that is durable."""
        self._untidy = any(durable.leftovers(path / place) for place in (JOURNAL, SNAPSHOTS))

    @classmethod
    def open(cls, path: str | Path) -> Checkpoint:
        """Open a checkpoint, or begin one in a missing or empty directory; a CheckpointError changes nothing."""
        directory = _local(path)
        with _explained(directory, "the checkpoint could not be opened"):
            fresh = _is_fresh(directory)
            durable.make_directory(directory)
            lock = durable.FileLock.take(directory / LOCK)
            if lock is None:
                holder = durable.lock_holder(directory / LOCK)
                raise CheckpointError(
                    f"checkpoint {directory} is in use by {holder}; stop it first, or choose another directory"
                )
            try:
                # Asked again: another process may have begun it before this one had the lock.
                if fresh and _is_fresh(directory):
                    _begin(directory)
                _check_layout(directory)
                return cls(directory, lock)
            except BaseException:
                lock.release(undo=True)
                raise

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot as found at open, if there is one; it is read when first asked for."""
        self._check_recovering()
        if self._base is not None and self._loaded is None:
            with _explained(self.path, "the snapshot could not be read"):
                self._loaded = _read_snapshot(self._base)
        return self._loaded

    def entries(self) -> Iterator[Entry]:
        """The entries after the snapshot as found at open, in order; each is read when it is its turn."""
        for step in range(self._first, self._last + 1):
            self._check_recovering()
            with _explained(self.path, "the journal could not be read"):
                entry, _ = _read_entry(_journal_file(self.path, step), step)
            yield entry

    def append(self, meta: Mapping[str, Any], table: pa.Table | None = None) -> int:
        """Add an entry to the journal and return its step; it is durable when this returns."""
        with self._mutex:
            self._check_open()
            step = self.step + 1
            chunks = _entry_chunks(step, meta, table)
            with self._writing(f"step {step}"):
                size = durable.write_file(_journal_file(self.path, step), chunks)
            self.step = step
            self.journal_bytes += _on_disk(size)
            self._loaded = None  # recovery is over; a snapshot may be large
            self._tidy()
            return step

    def compact(self, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """Write a snapshot that includes all steps so far, durably; then older snapshots and the journal go."""
        with self._mutex:
            self._check_open()
            directory = self._next_snapshot()
            with self._writing(f"the snapshot of step {self.step}"):
                size = _write_snapshot(directory, self.step, meta, blobs)
            self._base, self._loaded, self._compacted = directory, None, True
            self.snapshot_bytes = size
            self.journal_bytes = 0
            self._untidy = True
            self._tidy()

    @property
    def worth_compacting(self) -> bool:
        """Whether the journal is so much larger than the state that a snapshot pays."""
        return self.journal_bytes > max(SMALLEST_COMPACTION, 2 * self.snapshot_bytes)

    def folder(self, name: str) -> Path:
        """The place of a subdirectory for others, such as Spark's offsets; it is not made."""
        parts = Path(name).parts
        own = (MARKER, LOCK, JOURNAL, SNAPSHOTS)
        if not parts or Path(name).is_absolute() or ".." in parts or parts[0] in own:
            raise CheckpointError(
                f"expected a relative folder name outside {', '.join(own)}, found {name!r}; choose another name"
            )
        return self.path / name

    def close(self) -> None:
        """Free the directory for others; a second call does nothing."""
        with self._mutex:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._lock is None:
            raise StateError(f"checkpoint {self.path} is closed; open it again to go on")

    def _check_recovering(self) -> None:
        self._check_open()
        if self._compacted:
            raise StateError(f"checkpoint {self.path} was compacted; read what was found at open before that")

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        try:
            with _explained(self.path, f"{what} could not be written"):
                yield
        except BaseException:
            self._untidy = True
            raise

    def _next_snapshot(self) -> Path:
        """A name after all others: a directory cannot be replaced atomically, so a step may have a second snapshot."""
        path = self.path / SNAPSHOTS / f"{self.step:012}"
        newest = _newest_snapshot(self.path)
        if newest is None or _snapshot_order(newest)[0] < self.step:
            return path
        return path.with_name(f"{path.name}.{_snapshot_order(newest)[1] + 1}")

    def _tidy(self) -> None:
        """Remove what an interrupted write left, and what the newest snapshot replaces."""
        if not self._untidy:
            return
        journal, snapshots = self.path / JOURNAL, self.path / SNAPSHOTS
        try:
            waste = [path for place in (journal, snapshots) for path in durable.leftovers(place)]
            if self._base is not None and self._compacted:
                included = _snapshot_order(self._base)[0]
                waste += [path for path in _named(snapshots, _SNAPSHOT_NAME) if path != self._base]
                waste += [path for path in _named(journal, _JOURNAL_NAME) if int(path.stem) <= included]
        except OSError:
            return  # the next call tries again; readers ignore all of this
        durable.remove(waste)
        self._untidy = False


# ---- the directory ------------------------------------------------------------------------------------------------


def _local(path: str | Path) -> Path:
    """The absolute local path of what the user named."""
    text = os.fspath(path)
    if text.startswith("file:"):
        # As Spark reads it: file:/a, file:///a and file://localhost/a are /a, and % means itself.
        text = re.sub(r"^file:(//(localhost)?(?=/))?", "", text)
        if text.startswith("//"):
            raise CheckpointError(f"expected a directory of this machine, found {path}; write file:///path")
    elif _URI.match(text):
        raise CheckpointError(
            f"expected a directory on a local disk, found {text}; give a local path such as ./checkpoint "
            "(other file systems are not supported yet)"
        )
    if not text or "\0" in text:
        raise CheckpointError(f"expected the path of a directory for the checkpoint, found {str(path)!r}")
    return Path(text).absolute()


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Turn an error of the system into one that tells the user what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"{what}, there is no space on the disk: free some and start again; nothing is lost"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            text = f"{what}, no permission ({error}): grant it, or choose another directory; nothing is lost"
        else:
            text = f"{what} ({error}): remove the cause and start again; nothing is lost"
        raise CheckpointError(f"checkpoint {path}: {text}") from error


def _is_fresh(path: Path) -> bool:
    """Whether a checkpoint can begin here; False if one is here, and an error if something else is."""
    if not path.exists():
        return True
    if not path.is_dir():
        raise CheckpointError(f"{path} is a file; a checkpoint needs a directory of its own: choose an empty directory")
    marker = path / MARKER
    if os.path.lexists(marker):
        _check_marker(path, marker)
        return False
    # Asked for the marker again at the end: another process may be beginning a checkpoint here right now.
    if not all(_is_from_a_start(one) for one in path.iterdir()) and not os.path.lexists(marker):
        raise CheckpointError(
            f"{path} is not a Windrow checkpoint (it has files, but no {MARKER}); choose an empty directory"
        )
    return True


def _is_from_a_start(path: Path) -> bool:
    """Whether this is what a process that was killed in `_begin` leaves behind."""
    if path.name in (JOURNAL, SNAPSHOTS):
        return path.is_dir() and not any(path.iterdir())
    if path.name == LOCK:
        return path.is_file() and re.fullmatch(rb"\d*", path.read_bytes()) is not None
    return path == durable.temporary(path.with_name(MARKER))


def _begin(path: Path) -> None:
    """Make an empty checkpoint; the marker comes last, so with it the rest is there."""
    durable.make_directory(path / JOURNAL)
    durable.make_directory(path / SNAPSHOTS)
    durable.write_file(path / MARKER, [json.dumps({"kind": KIND, "version": VERSION}).encode() + b"\n"])


def _check_marker(path: Path, marker: Path) -> None:
    try:
        found = json.loads(marker.read_bytes())
        kind, version = found["kind"], found["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(marker, "it does not say what this directory is") from error
    if kind != KIND:
        raise CheckpointError(f"{path} is not a Windrow checkpoint ({MARKER} says {kind!r}); choose an empty directory")
    if version != VERSION:
        raise CheckpointError(
            f"checkpoint {path} has version {version!r}, and this Windrow reads version {VERSION}; use the Windrow "
            "that wrote it, or start afresh in another directory. It was left as it is."
        )


def _check_layout(path: Path) -> None:
    effective = os.access in os.supports_effective_ids
    for one in (path, path / JOURNAL, path / SNAPSHOTS):
        if not one.is_dir():
            raise _damaged(one, "this directory is missing")
        if not os.access(one, os.R_OK | os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(one))


def _damaged(file: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint file {file} is damaged: {what}. The checkpoint was left as it is: restore it from a copy, or "
        "start afresh in another directory"
    )


def _named(directory: Path, pattern: re.Pattern[str]) -> list[Path]:
    return [path for path in directory.iterdir() if pattern.fullmatch(path.name)]


def _on_disk(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


# ---- journal files ------------------------------------------------------------------------------------------------


class _Chunks(io.RawIOBase):
    """Collects the buffers that Arrow writes, without copying them."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[memoryview] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.chunks.append(memoryview(data).cast("B"))
        return len(data)


def _journal_file(path: Path, step: int) -> Path:
    return path / JOURNAL / f"{step:012}.arrow"


def _journal_steps(path: Path, first: int) -> range:
    """The steps from `first` on; those before it are what a killed compaction did not remove."""
    found = sorted(int(one.stem) for one in _named(path / JOURNAL, _JOURNAL_NAME) if int(one.stem) >= first)
    for expected, step in enumerate(found, first):
        if step != expected:
            missing = _journal_file(path, expected)
            raise _damaged(missing, f"it is missing, but the journal goes on with step {step}")
    return range(first, first + len(found))


def _entry_chunks(step: int, meta: Mapping[str, Any], table: pa.Table | None) -> list[memoryview]:
    schema = pa.schema([]) if table is None else table.schema
    about = {"step": step, "meta": dict(meta), "table": table is not None}
    metadata = {**(schema.metadata or {}), ENTRY_KEY: json.dumps(about).encode()}
    sink = _Chunks()
    with pa.ipc.new_stream(sink, schema.with_metadata(metadata)) as writer:
        if table is not None:
            writer.write_table(table.replace_schema_metadata(metadata))
    size = sum(len(chunk) for chunk in sink.chunks)
    return [*sink.chunks, memoryview(TRAILER.pack(MAGIC, size, durable.checksum(sink.chunks)))]


def _read_entry(file: Path, step: int) -> tuple[Entry, int]:
    """The entry of a journal file and the size of the file; an error if a single bit of it is not as written."""
    try:
        content = memoryview(file.read_bytes())
    except (FileNotFoundError, IsADirectoryError) as error:
        raise _damaged(file, "it is not a file any more") from error
    stream, trailer = content[: -TRAILER.size], content[-TRAILER.size :]
    if len(trailer) < TRAILER.size or TRAILER.unpack(trailer)[:2] != (MAGIC, len(stream)):
        raise _damaged(file, f"{len(content)} bytes without the end of a journal file; it is truncated or not one")
    expected, found = TRAILER.unpack(trailer)[2], durable.checksum([stream])
    if found != expected:
        raise _damaged(file, f"its checksum should be {expected:08x} and is {found:08x}")
    try:
        table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
        metadata = dict(table.schema.metadata or {})
        about = json.loads(metadata.pop(ENTRY_KEY))
        found_step, meta, has_table = about["step"], about["meta"], about["table"]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"it is not an Arrow stream of Windrow ({error})") from error
    if found_step != step:
        raise _damaged(file, f"it holds step {found_step}; it was renamed")
    return Entry(step, meta, table.replace_schema_metadata(metadata or None) if has_table else None), len(content)


# ---- snapshots ----------------------------------------------------------------------------------------------------


def _snapshot_order(directory: Path) -> tuple[int, int]:
    """Step, and which of the snapshots of this step."""
    step, _, again = directory.name.partition(".")
    return int(step), int(again or 0)


def _newest_snapshot(path: Path) -> Path | None:
    return max(_named(path / SNAPSHOTS, _SNAPSHOT_NAME), key=_snapshot_order, default=None)


def _write_snapshot(directory: Path, step: int, meta: Mapping[str, Any], blobs: Mapping[str, bytes]) -> int:
    """Write a snapshot, all of it or nothing; returns its size."""
    about = json.dumps({"step": step, "meta": dict(meta)}).encode()
    parts = {META: about} | {f"blob-{number:06}": blob for number, blob in enumerate(blobs.values())}
    files = {name: {"size": len(part), "crc32": durable.checksum([part])} for name, part in parts.items()}
    body = {"step": step, "files": files, "blobs": {name: f"blob-{number:06}" for number, name in enumerate(blobs)}}
    try:
        unfinished = durable.new_directory(directory)
        size = sum(durable.write_part(unfinished / name, [part]) for name, part in parts.items())
        manifest = json.dumps({"body": body, "crc32": _body_checksum(body)}).encode()
        size += durable.write_part(unfinished / MANIFEST, [manifest])
        durable.publish_directory(directory)
    except OSError:
        # Once it has its name it stays, whatever failed: it is complete, and removing it could be interrupted half way.
        durable.remove([durable.temporary(directory)])
        raise
    return size


def _body_checksum(body: object) -> int:
    return durable.checksum([json.dumps(body, sort_keys=True).encode()])


def _read_manifest(directory: Path) -> tuple[dict[str, Any], int]:
    """The manifest's body and the size of the manifest."""
    file = directory / MANIFEST
    try:
        content = file.read_bytes()
        manifest = json.loads(content)
        body = manifest["body"]
        good = _body_checksum(body) == manifest["crc32"] and body["step"] == _snapshot_order(directory)[0]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise _damaged(file, "it is missing, so the snapshot is not complete") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"it is not a manifest ({error})") from error
    if not good:
        raise _damaged(file, "its checksum or its step is wrong")
    return body, len(content)


def _verified_size(directory: Path) -> int:
    """The size of a snapshot, after every file in it was found as written."""
    body, total = _read_manifest(directory)
    for name, expected in body["files"].items():
        try:
            size, crc = durable.file_checksum(directory / name)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise _damaged(directory / name, "it is missing") from error
        _check_part(directory / name, expected, size, crc)
        total += size
    return total


def _read_snapshot(directory: Path) -> Snapshot:
    body, _ = _read_manifest(directory)

    def part(name: str) -> bytes:
        content = (directory / name).read_bytes()
        _check_part(directory / name, body["files"][name], len(content), durable.checksum([content]))
        return content

    about = json.loads(part(META))
    return Snapshot(about["step"], about["meta"], {name: part(file) for name, file in body["blobs"].items()})


def _check_part(file: Path, expected: dict[str, int], size: int, crc: int) -> None:
    if (size, crc) != (expected["size"], expected["crc32"]):
        raise _damaged(
            file,
            f"expected {expected['size']} bytes with checksum {expected['crc32']:08x}, found {size} with {crc:08x}",
        )
