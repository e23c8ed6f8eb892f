"""The demo stream: simulated IP packet headers, as in the experiments of thesis 7.5 and 8.5, with skewed addresses.

One packet per millisecond on average, and a rate that swings by a factor of up to ten; a few addresses send most of
the packets (Zipf). Packets arrive a little out of order, always less than two seconds. Twice something happens that a
network engineer would like to see: a flood of SYN packets from one host, and a large download.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SEED = 2006
RATE = 1_000
"""Packets per second of event time, on average."""
SECOND = 1_000_000
START = 1_767_225_600 * SECOND
"""2026-01-01 00:00:00."""
LATENESS = 2 * SECOND
LONGEST_DELAY = 1_900_000
"""Below LATENESS, so that no packet is late."""
CLIENTS, SERVERS = 800, 200
SKEW = 1.1
"""The exponent of the Zipf distribution of clients and servers."""
DECLARED = (
    "ts TIMESTAMP, src STRING, dst STRING, sport INT, dport INT, proto STRING, length INT, flags STRING"
)  # fmt: skip

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("src", pa.dictionary(pa.int32(), pa.string())),
        ("dst", pa.dictionary(pa.int32(), pa.string())),
        ("sport", pa.int32()),
        ("dport", pa.int32()),
        ("proto", pa.dictionary(pa.int8(), pa.string())),
        ("length", pa.int32()),
        ("flags", pa.dictionary(pa.int8(), pa.string())),
    ]
)
_PROTOCOLS = ["tcp", "udp", "icmp"]
_FLAGS = ["S", "SA", "A", "PA", "FA", "R"]
_TABLE = 1 << 16
"""Draws are looked up in tables of this size: one random 16-bit number each, no search."""


@dataclass(frozen=True)
class Kind:
    """A kind of packet: its share of the stream, its port at the server, who sends it, how long it is."""

    share: float
    protocol: str
    port: int
    flags: str | None
    from_client: bool
    shortest: int
    longest: int


KINDS = (
    Kind(0.030, "tcp", 443, "S", True, 52, 60),
    Kind(0.030, "tcp", 443, "SA", False, 52, 60),
    Kind(0.180, "tcp", 443, "A", True, 40, 52),
    Kind(0.080, "tcp", 443, "PA", True, 120, 900),
    Kind(0.300, "tcp", 443, "PA", False, 600, 1500),
    Kind(0.025, "tcp", 443, "FA", True, 40, 52),
    Kind(0.010, "tcp", 80, "S", True, 52, 60),
    Kind(0.040, "tcp", 80, "PA", True, 100, 700),
    Kind(0.090, "tcp", 80, "PA", False, 400, 1500),
    Kind(0.020, "tcp", 22, "PA", True, 60, 240),
    Kind(0.020, "tcp", 22, "PA", False, 60, 400),
    Kind(0.015, "tcp", 25, "PA", True, 200, 1500),
    Kind(0.005, "tcp", 443, "R", False, 40, 40),
    Kind(0.050, "udp", 53, None, True, 56, 90),
    Kind(0.050, "udp", 53, None, False, 80, 512),
    Kind(0.025, "udp", 123, None, True, 76, 76),
    Kind(0.020, "udp", 443, None, False, 800, 1350),
    Kind(0.010, "icmp", 0, None, True, 64, 84),
)
FLOOD = (0.60, 0.68)
"""The part of the time in which one host floods a server with SYN packets."""
DOWNLOAD = (0.25, 0.37)
"""The part of the time in which one server sends a client a large file."""


def write_packets(
    directory: Path, rows: int, files: int = 12, seed: int = SEED, progress: Callable[[int], None] | None = None
) -> None:
    """Write `rows` packets as Parquet files of increasing time; `progress` is told the rows written so far."""
    directory.mkdir(parents=True, exist_ok=True)
    traffic = Traffic(rows, seed)
    now = time.time()
    for number in range(files):
        start, end = rows * number // files, rows * (number + 1) // files
        path = directory / f"part-{number:05d}.parquet"
        # Under its final name a file is complete: a stream may be reading the directory already.
        hidden = directory / f".{path.name}.tmp"
        pq.write_table(
            traffic.packets(number, start, end),
            hidden,
            compression="snappy",
            use_dictionary=["src", "dst", "proto", "flags"],
            # Readers shall see plain strings, not Arrow's dictionaries.
            store_schema=False,
        )
        # Spark takes the files of a stream in the order of their times, which may have full seconds only.
        mtime = now - (files - 1 - number)
        os.utime(hidden, (mtime, mtime))
        hidden.replace(path)
        if progress is not None:
            progress(end)


class Traffic:
    """The whole stream: who talks, how fast, and the packets of any part of it."""

    def __init__(self, rows: int, seed: int = SEED) -> None:
        self._seed = seed
        random = np.random.default_rng(seed)
        # One dictionary: the clients' addresses, then the servers'.
        self._addresses = pa.array(_addresses(random, "10", 12, CLIENTS) + _addresses(random, "172", 9, SERVERS))
        self._clients = _zipf_table(CLIENTS)
        self._servers = (_zipf_table(SERVERS) + CLIENTS).astype(np.int32)
        self._kinds = _lookup_table(np.array([kind.share for kind in KINDS])).astype(np.int8)
        seconds = max(1, -(-rows // RATE))
        self._counts = _shares(_rates(random, seconds), rows)
        self._ends = np.cumsum(self._counts)
        self._seconds = seconds

    def packets(self, part: int, start: int, end: int) -> pa.Table:
        """The packets of ranks `start` to `end` (in the order of time), as they arrive."""
        random = np.random.default_rng([self._seed, part])
        count = end - start
        ts = self._times(random, start, end)
        kinds = self._kinds[_draw(random, count)]
        clients, servers = self._clients[_draw(random, count)], self._servers[_draw(random, count)]
        self._incidents(random, ts, kinds, clients, servers)
        columns = _by_kind(random, kinds)
        sent = columns["from_client"]
        high = (32_768 + (_draw(random, count) >> 2)).astype(np.int32)
        high[columns["port"] == 0] = 0
        arrays = {
            "ts": pa.array(ts, pa.timestamp("us")),
            "src": self._addressed(np.where(sent, clients, servers)),
            "dst": self._addressed(np.where(sent, servers, clients)),
            "sport": pa.array(np.where(sent, high, columns["port"])),
            "dport": pa.array(np.where(sent, columns["port"], high)),
            "proto": pa.DictionaryArray.from_arrays(columns["protocol"], _PROTOCOLS),
            "length": pa.array(columns["length"]),
            "flags": pa.DictionaryArray.from_arrays(pa.array(columns["flags"], mask=columns["flags"] < 0), _FLAGS),
        }
        return pa.table(arrays, schema=SCHEMA)

    def _times(self, random: np.random.Generator, start: int, end: int) -> NDArray[np.int64]:
        """Times of these ranks in the order of arrival; most packets are delayed a little, one of a thousand much."""
        ranks = np.arange(start, end)
        second = np.searchsorted(self._ends, ranks, side="right")
        inside = ranks - (self._ends - self._counts)[second]
        step = SECOND / self._counts[second]
        ts: NDArray[np.int64] = START + second * SECOND + ((inside + random.random(len(ranks))) * step).astype(np.int64)
        delay = np.minimum(random.standard_exponential(len(ranks), dtype=np.float32) * 40_000, LONGEST_DELAY)
        stragglers = random.integers(0, max(1, len(ranks)), len(ranks) // 1_000)
        delay[stragglers] = random.random(len(stragglers)) * LONGEST_DELAY
        return ts[np.argsort(ts + delay.astype(np.int64), kind="stable")]

    def _incidents(
        self,
        random: np.random.Generator,
        ts: NDArray[np.int64],
        kinds: NDArray[np.int8],
        clients: NDArray[np.int32],
        servers: NDArray[np.int32],
    ) -> None:
        """Some packets of the time of an incident become part of it, in place."""
        flood, large = 0, 4  # their places in KINDS
        span = self._seconds * SECOND
        for (begin, end), share, kind, client, server in (
            (FLOOD, 0.4, flood, CLIENTS - 7, CLIENTS + 3),
            (DOWNLOAD, 0.25, large, CLIENTS - 40, CLIENTS + SERVERS - 5),
        ):
            within = (ts >= START + int(begin * span)) & (ts < START + int(end * span))
            chosen = np.flatnonzero(within)
            chosen = chosen[random.random(len(chosen)) < share]
            kinds[chosen], clients[chosen], servers[chosen] = kind, client, server

    def _addressed(self, codes: NDArray[np.int32]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), self._addresses)


def _by_kind(random: np.random.Generator, kinds: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
    shortest = np.array([kind.shortest for kind in KINDS], np.int32)[kinds]
    spread = np.array([kind.longest - kind.shortest + 1 for kind in KINDS], np.int32)[kinds]
    flags = [-1 if kind.flags is None else _FLAGS.index(kind.flags) for kind in KINDS]
    return {
        "length": shortest + (_draw(random, len(kinds)).astype(np.int32) * spread >> 16),
        "port": np.array([kind.port for kind in KINDS], np.int32)[kinds],
        "from_client": np.array([kind.from_client for kind in KINDS])[kinds],
        "protocol": np.array([_PROTOCOLS.index(kind.protocol) for kind in KINDS], np.int8)[kinds],
        "flags": np.array(flags, np.int8)[kinds],
    }


def _draw(random: np.random.Generator, count: int) -> NDArray[np.uint16]:
    return random.integers(0, _TABLE, count, dtype=np.uint16)


def _lookup_table(weights: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """A table in which item i stands in proportion to its weight: a uniform draw of a place is a draw by weight."""
    ends = np.cumsum(weights / weights.sum())
    places = (np.arange(_TABLE) + 0.5) / _TABLE
    return np.minimum(np.searchsorted(ends, places), len(weights) - 1)


def _zipf_table(items: int) -> NDArray[np.int32]:
    return _lookup_table(1.0 / np.arange(1, items + 1) ** SKEW).astype(np.int32)


def _addresses(random: np.random.Generator, first: str, networks: int, count: int) -> list[str]:
    """Different addresses `first.network.x.y`, of a few /16 networks."""
    codes = random.choice(networks << 16, count, replace=False)
    base = 16  # 172.16.0.0/12 and its like
    return [f"{first}.{base + (code >> 16)}.{code >> 8 & 255}.{code & 255}" for code in codes.tolist()]


def _rates(random: np.random.Generator, seconds: int) -> NDArray[np.float64]:
    """Relative rates of the seconds: slow waves and short bursts, up to ten times more or less than usual."""
    moment = np.arange(seconds) / max(60, seconds)
    waves = 0.4 * np.sin(2 * np.pi * 3 * moment) + 0.2 * np.sin(2 * np.pi * 17 * moment + 1.0)
    noise = random.normal(0.0, 0.25, seconds)
    rates: NDArray[np.float64] = np.exp(np.clip(waves + noise, np.log(0.1), np.log(10.0)))
    return rates


def _shares(weights: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights that sum up to `total`."""
    ends = np.round(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    return np.diff(ends, prepend=0)
