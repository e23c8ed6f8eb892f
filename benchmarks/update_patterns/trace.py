"""A trace of connections on three outgoing links, like the one of the thesis (3.6.1), or made from two Zeek logs.

The thesis takes the wide-area TCP connections of a laboratory in 1993: time, duration, protocol, bytes, source and
destination, split into links by destination, about one tuple per link and unit of time. What its figures depend on is
documented there, and made here:

- telnet is far more frequent than ftp: joining a link's telnet connections gives about ten times the results of ftp,
  and the ftp results are about as many as the input tuples (in the longest window);
- some 2,000 sources in a window, skewed, and about ten times as many pairs of source and destination;
- links share their sources, but not evenly: of the results of a negation a good part ends before its time.

Not told there, and assumed here: sources come and go (each span of time has others), so results grow about as the
windows do, and not with their square; and a protocol that is rare (gopher) for the join of query 4. Which plan of
query 4 is the better one depends on both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windrow.kernels.jit import Ints

LINKS = ("link1", "link2", "link3")
COLUMNS = "(ts BIGINT, duration DOUBLE, protocol VARCHAR, bytes BIGINT, src INT, dst INT) TIME ts"
PROTOCOLS = {"smtp": 0.34, "nntp": 0.238, "telnet": 0.16, "finger": 0.12, "domain": 0.09, "ftp": 0.05, "gopher": 0.002}
"""The share of each in the connections."""
SOURCES = 2400
ACTIVE = 120
"""Sources that connect in one span of time; the next one has others."""
SPAN = 10_000
EXCLUSIVE = 3
"""Every so many of them use one link only."""
SPREAD = 16
"""Destinations that a source has on one link, at most."""


@dataclass(frozen=True)
class Trace:
    """The tuples of each link in the order of their timestamps; all links have some at about the same time."""

    links: Mapping[str, tuple[pa.RecordBatch, Ints]]

    def between(self, since: int, upto: int) -> dict[str, tuple[pa.RecordBatch, Ints]]:
        """The tuples with since < ts <= upto."""
        part = {}
        for name, (batch, ts) in self.links.items():
            low, high = np.searchsorted(ts, (since, upto), side="right").tolist()
            part[name] = batch.slice(low, high - low), ts[low:high]
        return part

    def cuts(self, since: int, size: int) -> Iterator[tuple[int, int]]:
        """Time after `since` in pieces of `size` tuples, of all links together: (tuples, end)."""
        every = np.sort(np.concatenate([ts[ts > since] for _, ts in self.links.values()]))
        ends = every[size - 1 :: size]
        before = 0
        for end in np.unique(ends).tolist():
            behind = int(np.searchsorted(every, end, side="right"))
            yield behind - before, end
            before = behind

    @property
    def last(self) -> int:
        """The last timestamp."""
        return max(int(ts[-1]) for _, ts in self.links.values())


def generated(ticks: int, links: int, seed: int = 7) -> Trace:
    """One tuple per link and tick."""
    rng = np.random.default_rng(seed)
    names = pa.array(list(PROTOCOLS))
    fewer = 1 / (np.arange(SPREAD) + 1.0)
    sources = _sources(ticks, links, rng)
    made = {}
    for number, link in enumerate(LINKS[:links]):
        ts, src = np.arange(1, ticks + 1), sources[number]
        near = rng.choice(SPREAD, ticks, p=fewer / fewer.sum())
        dst = (src * 7919 + near * near * 31) % 10_000 + 10_000 * number
        protocols = rng.choice(len(PROTOCOLS), ticks, p=list(PROTOCOLS.values()))
        made[link] = _link(ts, rng.exponential(20.0, ticks), names.take(pa.array(protocols)), src, dst, rng), ts
    return Trace(made)


def _sources(ticks: int, links: int, rng: np.random.Generator) -> list[Ints]:
    """Who connects: in each span of time some sources are active, most of them on all links."""
    popular = 1 / (np.arange(ACTIVE) + 10.0)
    found: list[list[Ints]] = [[] for _ in range(links)]
    for begin in range(0, ticks, SPAN):
        size = min(SPAN, ticks - begin)
        active = rng.permutation(SOURCES)
        own = active[ACTIVE:]
        for number in range(links):
            here = active[:ACTIVE].copy()
            here[::EXCLUSIVE] = own[number * ACTIVE : (number + 1) * ACTIVE : EXCLUSIVE]
            found[number].append(rng.choice(here, size, p=popular / popular.sum()))
    return [np.concatenate(parts) for parts in found]


def zeek(folder: Path) -> Trace:
    """DNS exchanges as link1, TLS connections as link2, in the order of their (whole) milliseconds.

    The protocol of a DNS exchange is that of its transport; TLS is tcp.
    """
    logs = {}
    for name in ("dns", "ssl"):
        log = pq.read_table(folder / f"zeek-{name}.parquet").sort_by("ts")
        logs[name] = log
    hosts = pc.unique(pa.chunked_array([c for log in logs.values() for n in ("src", "dst") for c in log[n].chunks]))
    first = min(int(log["ts"].cast(pa.int64())[0].as_py()) for log in logs.values())
    rng = np.random.default_rng(1)
    made = {}
    for link, log in zip(LINKS, logs.values(), strict=False):
        ts = (log["ts"].cast(pa.int64()).to_numpy() - first) // 1000 + 1
        src, dst = (pc.index_in(log[n].combine_chunks(), hosts).to_numpy() for n in ("src", "dst"))
        known = log["proto"] if "proto" in log.column_names else pa.array(["tcp"] * len(ts))
        protocol = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
        made[link] = _link(ts, np.zeros(len(ts)), protocol, src, dst, rng), ts
    return Trace(made)


def _link(
    ts: Ints, duration: NDArray[np.float64], protocol: pa.Array, src: Ints, dst: Ints, rng: np.random.Generator
) -> pa.RecordBatch:
    columns = {
        "ts": pa.array(ts),
        "duration": pa.array(duration),
        "protocol": protocol,
        "bytes": pa.array(rng.integers(40, 1_000_000, len(ts))),
        "src": pa.array(src.astype(np.int32)),
        "dst": pa.array(dst.astype(np.int32)),
    }
    return pa.RecordBatch.from_pydict(columns)
