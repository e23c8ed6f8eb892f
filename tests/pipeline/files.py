"""Streams as directories of files, for tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TICKS_DDL = "t BIGINT, a INT, b BIGINT, x DOUBLE, s STRING, f BOOLEAN, d TIMESTAMP"
"""The columns of tests.random_queries.TICKS."""


def write_files(directory: Path, pieces: Sequence[pa.Table], *, first: int = 0) -> None:
    """One Parquet file per piece; Spark takes files in the order of their modification times."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, piece in enumerate(pieces, first):
        file = directory / f"part-{number:04}.parquet"
        hidden = directory / f".{file.name}"
        pq.write_table(piece, hidden)
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(file)
