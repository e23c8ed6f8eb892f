"""A batch after slicing, wherever that was done: what the engine absorbs, and its form on the wire.

worker ─► Sliced ─► pack: rows of (kind, part, data) ─► Spark ─► unpack, merged ─► Engine.absorb
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windrow.errors import InputError
from windrow.synopses.partials import Partials

SCHEMA = pa.schema([("kind", pa.string()), ("part", pa.int32()), ("data", pa.binary())])
"""What a worker gives back; `part` is the number of the slice."""
MOST_ENTRIES = 1 << 19
"""Entries of partials, or rows, in one blob: some tens of megabytes."""


_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Most words are small numbers in 8 bytes: this costs less than Spark's several copies of the rest."""


@dataclass
class Sliced:
    """What one batch, or a part of it, brings: partials per slice, and what to know about its rows."""

    rows: int = 0
    oldest: int | None = None
    newest: int | None = None
    """Of all rows, late ones included."""
    kept: tuple[int, int] | None = None
    """The oldest and newest row that is not late."""
    late_rows: int = 0
    late: list[pa.Table] = field(default_factory=list)
    partials: list[tuple[int, Partials]] = field(default_factory=list)
    """By the number of the slice."""
    tuples: list[pa.Table] = field(default_factory=list)
    """The rows themselves, if somebody must number them."""
    failed: dict[tuple[int, int], str] = field(default_factory=dict)
    """(slice, term) of the job: why no value could be computed for some row."""
    files: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def see(self, rows: int, oldest: int, newest: int) -> None:
        """Some more rows."""
        self.rows += rows
        self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)
        self.newest = newest if self.newest is None else max(self.newest, newest)

    def keep(self, oldest: int, newest: int) -> None:
        """Some of them are not late."""
        old, new = self.kept or (oldest, newest)
        self.kept = min(old, oldest), max(new, newest)

    def spend(self, phase: str, seconds: float) -> None:
        """Time that a phase took, in the worker."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


def pack(sliced: Sliced) -> Iterator[pa.RecordBatch]:
    """The rows that travel; every blob is Arrow IPC or JSON."""
    about = {
        "rows": sliced.rows,
        "oldest": sliced.oldest,
        "newest": sliced.newest,
        "kept": sliced.kept,
        "late_rows": sliced.late_rows,
        "failed": [[*place, why] for place, why in sliced.failed.items()],
        "files": sliced.files,
        "seconds": sliced.seconds,
    }
    yield _row("about", 0, json.dumps(about).encode())
    for table in sliced.late:
        for batch in table.to_batches(max_chunksize=MOST_ENTRIES):
            yield _row("late", 0, ipc(batch))
    for table in sliced.tuples:
        for batch in table.to_batches(max_chunksize=MOST_ENTRIES):
            yield _row("tuples", 0, ipc(batch))
    for number, part in sliced.partials:
        for batch in part.batches(MOST_ENTRIES):
            yield _row("partials", number, ipc(batch))


def pack_error(error: InputError) -> pa.RecordBatch:
    """Bad input is no failure of Spark's: it travels as a row, so that nothing is tried again in vain."""
    return _row("error", 0, str(error).encode())


def unpack(table: pa.Table) -> Sliced:
    """What all workers gave, merged; an error that travelled is raised."""
    whole = Sliced()
    kinds, numbers = table.column("kind").to_pylist(), table.column("part").to_pylist()
    blobs = (one.as_buffer() for chunk in table.column("data").chunks for one in chunk)
    for kind, number, data in zip(kinds, numbers, blobs, strict=True):
        match kind:
            case "error":
                raise InputError(data.to_pybytes().decode())
            case "late":
                whole.late.append(pa.Table.from_batches([batch_of(data)]))
            case "tuples":
                whole.tuples.append(pa.Table.from_batches([batch_of(data)]))
            case "partials":
                whole.partials.append((number, Partials.of(batch_of(data))))
            case _:
                _merge(whole, json.loads(data.to_pybytes()))
    return whole


def _merge(whole: Sliced, about: dict[str, Any]) -> None:
    if about["oldest"] is not None:
        whole.see(about["rows"], about["oldest"], about["newest"])
    if about["kept"] is not None:
        whole.keep(*about["kept"])
    whole.late_rows += about["late_rows"]
    whole.failed |= {(part, term): why for part, term, why in about["failed"]}
    whole.files += about["files"]
    for phase, seconds in about["seconds"].items():
        whole.spend(phase, seconds)


def _row(kind: str, part: int, data: bytes) -> pa.RecordBatch:
    return pa.record_batch([[kind], pa.array([part], pa.int32()), pa.array([data], pa.binary())], schema=SCHEMA)


def ipc(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def batch_of(data: pa.Buffer | bytes) -> pa.RecordBatch:
    """The inverse."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
