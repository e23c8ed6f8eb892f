"""Seeded random streams, and the disorder that they may arrive in: the same seed gives the same data."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

_START = datetime(2024, 1, 1, tzinfo=timezone.utc)
_PROTOCOLS = ("tcp", "udp", "icmp")
_PORTS = (443, 80, 53, 22, 25, 123, 8080, 3306)
_LENGTHS = (40, 52, 576, 1500)


def packets(
    n: int,
    seed: int,
    *,
    rate: float = 1000.0,
    start: datetime = _START,
    hosts: int = 256,
    skew: float = 1.1,
    null_fraction: float = 0.0,
) -> pa.Table:
    """Simulated IP packet headers in the order of their time: ts, src, dst, proto, port, length.

    Packets come at random, `rate` per second on average. Addresses follow Zipf's law: the host of rank r is seen in
    proportion to r^-skew. `null_fraction` of the ports are NULL, besides those of icmp, which has none.

    >>> packets(2, seed=1).schema.names
    ['ts', 'src', 'dst', 'proto', 'port', 'length']
    """
    random = np.random.default_rng(seed)
    gaps = random.exponential(1e6 / rate, n)
    first = round(start.timestamp() * 1e6)
    times = first + np.floor(np.cumsum(gaps)).astype(np.int64)
    protocols = random.choice(3, n, p=(0.8, 0.18, 0.02))
    usual = random.choice(_LENGTHS, n, p=(0.45, 0.1, 0.1, 0.35))
    lengths = np.where(random.random(n) < 0.7, usual, random.integers(40, 1501, n))
    ports = random.choice(_PORTS, n, p=zipf(len(_PORTS), 1.0))
    no_port = (protocols == 2) | (random.random(n) < null_fraction)
    return pa.table(
        {
            "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us")),
            "src": _addresses(random, n, hosts, skew, "10.0"),
            "dst": _addresses(random, n, hosts, skew, "192.168"),
            "proto": pa.array([_PROTOCOLS[protocol] for protocol in protocols], pa.string()),
            "port": pa.array(ports.astype(np.int32), pa.int32(), mask=no_port),
            "length": pa.array(lengths.astype(np.int32), pa.int32()),
        }
    )


def zipf(count: int, skew: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The probabilities of ranks 1 … count under Zipf's law."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -skew
    result: np.ndarray[Any, np.dtype[np.float64]] = weights / weights.sum()
    return result


def shuffle_within(table: pa.Table, time: str, lateness: int, seed: int) -> pa.Table:
    """An arrival order in which no tuple is late: each is delayed by at most `lateness` ticks.

    >>> rows = pa.table({"ts": [1, 2, 3, 10]})
    >>> shuffle_within(rows, "ts", 5, seed=3)["ts"].to_pylist()[-1]  # nothing overtakes by more than five ticks
    10
    """
    random = np.random.default_rng(seed)
    arrivals = table[time].cast(pa.int64()).to_numpy() + random.integers(0, lateness + 1, table.num_rows)
    # Equal arrival times are as random as unequal ones.
    order = np.lexsort((random.random(table.num_rows), arrivals))
    return table.take(pa.array(order))


def cut(table: pa.Table, seed: int, pieces: int) -> list[pa.Table]:
    """The table in so many batches, cut at random places; some may be empty.

    >>> pieces = cut(pa.table({"a": [1, 2, 3, 4, 5]}), seed=1, pieces=3)
    >>> len(pieces), pa.concat_tables(pieces)["a"].to_pylist()
    (3, [1, 2, 3, 4, 5])
    """
    random = np.random.default_rng(seed)
    cuts = [0, *sorted(random.integers(0, table.num_rows + 1, max(0, pieces - 1)).tolist()), table.num_rows]
    return [table.slice(begin, end - begin) for begin, end in pairwise(cuts)]


def _addresses(random: np.random.Generator, n: int, hosts: int, skew: float, network: str) -> pa.Array:
    names = [f"{network}.{host // 256}.{host % 256}" for host in range(hosts)]
    return pa.array([names[rank] for rank in random.choice(hosts, n, p=zipf(hosts, skew))], pa.string())
