"""Spark's own notes about a stream, beside the journal: which files and offsets belong to which micro-batch.

offsets/12      micro-batch 12 was begun, and how far each source is read by it
commits/12      micro-batch 12 is done
sources/0/13    the files that the first source found for its offset 13, a number of its own
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from windrow.errors import CheckpointError

_ENTRY = re.compile(r"(\d+)(?:\.compact)?")


def check_offsets(folder: Path, done: int) -> None:
    """Spark must know the micro-batches that the journal has, or it would give their numbers to others."""
    begun, committed = (_newest(folder / kind) for kind in ("offsets", "commits"))
    if not committed <= done <= begun:
        raise CheckpointError(
            f"{folder} does not fit the journal: Spark began micro-batches up to {begun} and committed those up to "
            f"{committed}, the journal has them up to {done}. Restore the whole checkpoint, or start afresh with "
            "another directory"
        )


def forget_unbegun(folder: Path) -> None:
    """Take back the files that Spark chose for a micro-batch which it was killed before it could begin.

    Spark would add them to the files of its next micro-batch. That one would be larger than in an undisturbed run, and
    rows that are late there would not be late here.
    """
    begun = _newest(folder / "offsets")
    reached = {} if begun < 0 else _reached(folder / "offsets" / str(begun))
    for source in folder.glob("sources/*"):
        last = -1 if begun < 0 else reached.get(source.name, sys.maxsize)
        for entry in source.glob("*"):
            # Other sources keep other things here, such as the offsets at which they were first opened.
            if _number(entry) > last and _lists_files(entry):
                # The checksum first: a file without one is good, another file with this one is not.
                entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
                entry.unlink()


def _number(entry: Path) -> int:
    name = _ENTRY.fullmatch(entry.name)
    return -1 if name is None else int(name[1])


def _newest(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("*") if file.name.isdigit()), default=-1)


def _reached(file: Path) -> dict[str, int]:
    """How far each file source, by the name of its folder, is read by a micro-batch; nothing of other sources."""
    lines = file.read_text(errors="replace").splitlines()
    if lines[:1] != ["v1"]:
        return {}
    # A source that had nothing yet has a dash: all that it noted was noted for later.
    offsets = [-1 if line == "-" else _record(line).get("logOffset") for line in lines[2:]]
    return {str(number): offset for number, offset in enumerate(offsets) if isinstance(offset, int)}


def _lists_files(entry: Path) -> bool:
    lines = entry.read_text(errors="replace").splitlines()[1:2]
    return bool(lines) and {"path", "batchId"} <= _record(lines[0]).keys()


def _record(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}
