"""The demo stream: as many rows as asked for, skewed, almost in order, always the same, quickly."""

from __future__ import annotations

import hashlib
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from windrow.serving.packets import CLIENTS, LATENESS, SECOND, SERVERS, START, write_packets

ROWS, FILES = 300_000, 5


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packets")
    write_packets(path, ROWS, FILES)
    return path


@pytest.fixture(scope="module")
def table(stream: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(stream.iterdir())])


def ticks(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


def test_rows_files_and_types(stream: Path, table: pa.Table) -> None:
    names = sorted(path.name for path in stream.iterdir())
    assert names == [f"part-0000{number}.parquet" for number in range(FILES)]
    assert table.num_rows == ROWS
    assert table.schema == pa.schema(
        [
            ("ts", pa.timestamp("us")), ("src", pa.string()), ("dst", pa.string()), ("sport", pa.int32()),
            ("dport", pa.int32()), ("proto", pa.string()), ("length", pa.int32()), ("flags", pa.string()),
        ]
    )  # fmt: skip


def test_arrival_is_out_of_order_but_never_late(table: pa.Table) -> None:
    ts = ticks(table)
    behind = np.maximum.accumulate(ts) - ts
    assert np.mean(behind > 0) > 0.1
    assert SECOND < behind.max() < LATENESS


def test_files_follow_each_other_in_time(stream: Path) -> None:
    paths = sorted(stream.iterdir())
    times = [ticks(pq.read_table(path)) for path in paths]
    assert all(earlier.max() < later.min() for earlier, later in pairwise(times))
    mtimes = [path.stat().st_mtime for path in paths]
    assert all(later - earlier >= 1 for earlier, later in pairwise(mtimes))


def test_the_rate_swings_around_one_packet_per_millisecond(table: pa.Table) -> None:
    per_second = np.bincount((ticks(table) - START) // SECOND)
    assert len(per_second) == ROWS // 1_000
    assert 2 < per_second.max() / np.median(per_second) < 10


def test_a_few_addresses_send_most(table: pa.Table) -> None:
    counts = np.sort(pc.value_counts(table["src"]).field("counts").to_numpy())[::-1]
    assert CLIENTS < len(counts) <= CLIENTS + SERVERS
    assert counts[:20].sum() > 0.5 * ROWS
    # Zipf: the n-th address has about n^-1.1 of the first one's packets (clients alone, without the incidents).
    clients = table.filter(pc.starts_with(table["src"], "10."))
    clients = clients.filter(pc.less(clients["ts"].cast(pa.int64()), START + 80 * SECOND))
    ranked = np.sort(pc.value_counts(clients["src"]).field("counts").to_numpy())[::-1]
    assert ranked[0] / ranked[9] == pytest.approx(10**1.1, rel=0.2)


def test_fields_fit_each_other(table: pa.Table) -> None:
    tcp = pc.equal(table["proto"], "tcp")
    assert pc.all(pc.equal(tcp, pc.is_valid(table["flags"]))).as_py()
    icmp = table.filter(pc.equal(table["proto"], "icmp"))
    assert pc.max(icmp["sport"]).as_py() == pc.max(icmp["dport"]).as_py() == 0
    assert (pc.min(table["length"]).as_py(), pc.max(table["length"]).as_py()) == (40, 1500)
    assert pc.all(pc.match_substring_regex(table["dst"], r"^(10|172)(\.\d{1,3}){3}$")).as_py()


def digest(path: Path) -> list[str]:
    return [hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(path.iterdir())]


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_packets(tmp_path / name, 5_000, 2, seed)
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")


@pytest.mark.parametrize("rows", [1, 11, 1_001])
def test_streams_may_be_small(tmp_path: Path, rows: int) -> None:
    write_packets(tmp_path, rows, 3)
    assert sum(pq.read_metadata(path).num_rows for path in tmp_path.iterdir()) == rows


def test_progress_counts_rows(tmp_path: Path) -> None:
    seen: list[int] = []
    write_packets(tmp_path, 1_000, 4, progress=seen.append)
    assert seen == [250, 500, 750, 1_000]


def test_it_is_quick(tmp_path: Path) -> None:
    start = time.process_time()
    write_packets(tmp_path, 500_000, 2)
    assert time.process_time() - start < 1.5  # a second per million rows, and room for a busy machine
