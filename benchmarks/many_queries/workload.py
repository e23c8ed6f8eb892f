"""The workload: simulated packets, and k queries in turn of four kinds with random windows (seeded)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RATE = 10_000
"""Packets per second of event time."""
SECOND = 1_000_000
SEED = 2006

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("src", pa.int32()),
        ("dst", pa.int32()),
        ("proto", pa.int32()),
        ("port", pa.int32()),
        ("length", pa.int32()),
    ]
)
DECLARATION = "CREATE STREAM packets (ts TIMESTAMP, src INT, dst INT, proto INT, port INT, length INT) TIME ts"


@dataclass(frozen=True)
class Spec:
    """One query: what it computes, over how many seconds, how often."""

    kind: str
    range: int
    slide: int

    @property
    def sql(self) -> str:
        """The query as a user writes it."""
        window = f"packets [RANGE {self.range} SECONDS SLIDE {self.slide} SECONDS]"
        return {
            "sum": f"SELECT SUM(length) AS value FROM {window}",
            "max": f"SELECT proto, MAX(length) AS value FROM {window} GROUP BY proto",
            "avg": f"SELECT src, AVG(length) AS value FROM {window} GROUP BY src",
            "count": f"SELECT dst, COUNT(*) AS value FROM {window} GROUP BY dst",
        }[self.kind]


KINDS = ("sum", "max", "avg", "count")
KEYS = {"max": ("proto", 100), "avg": ("src", 1000), "count": ("dst", 1000)}


def queries(count: int) -> list[Spec]:
    """RANGE in 20..100 s, SLIDE in 1..RANGE/2, the four kinds in turn."""
    random = np.random.default_rng(SEED)
    specs = []
    for number in range(count):
        length = int(random.integers(20, 101))
        specs.append(Spec(KINDS[number % 4], length, int(random.integers(1, length // 2 + 1))))
    return specs


def write(path: Path, rows: int) -> None:
    """The packets as one uncompressed Parquet file of row groups of 1 M rows, unless it is there."""
    if path.exists() and pq.read_metadata(path).num_rows == rows:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(SEED)
    with pq.ParquetWriter(path, SCHEMA, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - start)
            # Evenly spread, the first at 100 µs, so that every second holds exactly RATE packets.
            ts = (np.arange(start, start + count) + 1) * (SECOND // RATE)
            columns = [
                pa.array(ts, pa.timestamp("us")),
                *(pa.array(random.integers(0, n, count, dtype=np.int32)) for n in (1000, 1000, 100, 100)),
                pa.array(random.integers(40, 1501, count, dtype=np.int32)),
            ]
            writer.write_table(pa.table(columns, schema=SCHEMA), row_group_size=1_000_000)


def read(path: Path) -> Iterator[pa.RecordBatch]:
    """The packets in batches of 1 M rows."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, use_threads=False).combine_chunks().to_batches()[0]
