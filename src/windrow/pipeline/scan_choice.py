"""Which way the rows of a stream take to the workers, and why; decided without Spark, so that EXPLAIN can tell it.

arrow scan: Spark tracks and distributes the files of a Parquet directory; the workers read them with PyArrow.
row path:   Spark reads the rows (any format, any DataFrame) and hands them over as Arrow batches.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from glob import glob

import pyarrow as pa

from windrow.errors import InputError, SetupError
from windrow.language.catalog import Stream
from windrow.pipeline import scan
from windrow.pipeline.declared import OWN_OPTIONS, PARSED, Declared

_FILE_STREAM_OPTIONS = frozenset(
    {"path", "maxfilespertrigger", "maxbytespertrigger", "maxfileage", "latestfirst", "filenameonly",
     "pathglobfilter", "recursivefilelookup", "cleansource", "sourcearchivedir", "maxcachedfiles",
     "discardcachedinputratio", "ignoremissingfiles"}
)  # fmt: skip


@dataclass(frozen=True)
class Files:
    """What Spark lists under a path; `stream_path` is the path in a form that a streaming reader takes."""

    count: int
    first: str | None
    stream_path: str


def chosen_scan(stream: Stream, declared: Declared, files: Files | None) -> tuple[str, str]:
    """arrow or rows, and for EXPLAIN why; a SetupError when the user asked for what is not possible."""
    asked = declared.options.get("scan")
    if asked == "rows":
        return "rows", "row path: asked for by the option scan"
    against = _against_arrow(stream, declared, files)
    if against is None:
        return "arrow", "arrow scan: Spark tracks the Parquet files, the workers read them with PyArrow"
    if asked == "arrow":
        raise SetupError(f"stream {stream.name}: scan 'arrow' is not possible here: {against}; leave the option out")
    return "rows", f"row path: {against}"


def _against_arrow(stream: Stream, declared: Declared, files: Files | None) -> str | None:
    """Why the workers cannot read the files themselves; None when they can."""
    if declared.format in PARSED:
        return f"{declared.format} is parsed by Spark (its options and NULL rules are Spark's)"
    if declared.format != "parquet" or files is None:
        return f"{declared.format} is read by Spark"
    if declared.select is not None:
        return "the option select is computed by Spark"
    foreign = [name for name in stream.options if name.lower() not in {*_FILE_STREAM_OPTIONS, *OWN_OPTIONS}]
    if foreign:
        return f"the option {foreign[0]} is one of Spark's own reader"
    return _against_files(stream, files.first or files.stream_path, exists=files.first is not None)


def _against_files(stream: Stream, path: str, *, exists: bool) -> str | None:
    if scan.local_path(path) is None:
        try:
            scan.remote_path(path)
        except (pa.ArrowException, OSError) as error:
            return f"PyArrow cannot open {path} ({' '.join(str(error).split())[:120]})"
    if not exists:
        return None
    names = {column.name.lower(): column.name for column in stream.columns}
    for key in re.findall(r"/([^/=]+)=", path):
        if key.lower() in names:
            return f"the column {names[key.lower()]} is in the names of the directories"
    try:
        schema = scan.file_schema(path)
    except (pa.ArrowException, OSError):
        return None  # the worker that comes to this file says what is wrong with it
    scan.file_columns(path, stream, schema)
    return None


def expected_scan(stream: Stream) -> str:
    """For EXPLAIN without Spark: the `why` that a run will find, as far as the declaration and local files tell."""
    declared = Declared.of(stream)
    path = declared.options.get("path")
    files = None if path is None else Files(0, _first_local_file(path), path)
    try:
        return chosen_scan(stream, declared, files)[1]
    except (InputError, SetupError) as error:
        return f"none: {error}"


def _first_local_file(path: str) -> str | None:
    """The first file that Spark would list under a local path; None when there is none, or the path is elsewhere."""
    local = scan.local_path(path)
    if local is None:
        return None
    if any(sign in local for sign in "*?[{"):
        matches = sorted(glob(local))
        local = matches[0] if matches else local
    if os.path.isfile(local):
        return local
    for folder, folders, names in os.walk(local):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            if name[0] not in "._":
                return os.path.join(folder, name)
    return None
