"""Generated streams are repeatable, in order, skewed; disorder stays within its lateness."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from windrow.testing import cut, packets, shuffle_within


def test_packets_are_repeatable_and_in_the_order_of_time():
    first = packets(1000, seed=7, rate=50.0, null_fraction=0.1)
    assert first.equals(packets(1000, seed=7, rate=50.0, null_fraction=0.1))
    assert not first.equals(packets(1000, seed=8, rate=50.0, null_fraction=0.1))
    times = first["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all()
    assert 15e6 < times[-1] - times[0] < 25e6  # a thousand at fifty per second
    assert first["port"].null_count > 50
    assert first["ts"].type == pa.timestamp("us")


def test_addresses_are_skewed():
    counts = Counter(packets(20_000, seed=1, hosts=100, skew=1.2)["src"].to_pylist())
    ranked = [count for _, count in counts.most_common()]
    assert ranked[0] > 10 * ranked[20]
    even = Counter(packets(20_000, seed=1, hosts=100, skew=0.0)["src"].to_pylist())
    assert max(even.values()) < 2 * min(even.values())


@pytest.mark.parametrize("seed", range(5))
def test_no_tuple_is_late_within_the_lateness(seed):
    table = pa.table({"ts": sorted(np.random.default_rng(seed).integers(0, 300, 200).tolist()), "n": list(range(200))})
    shuffled = shuffle_within(table, "ts", 20, seed)
    newest = np.maximum.accumulate(shuffled["ts"].to_numpy())
    assert (shuffled["ts"].to_numpy() > newest - 20 - 1).all()  # above the watermark
    assert sorted(shuffled["n"].to_pylist()) == list(range(200))
    assert shuffled["n"].to_pylist() != list(range(200))


def test_without_lateness_only_ties_change_places():
    table = pa.table({"ts": [1, 1, 1, 2, 2, 3], "n": list(range(6))})
    assert shuffle_within(table, "ts", 0, seed=3)["ts"].to_pylist() == [1, 1, 1, 2, 2, 3]


def test_pieces_make_up_the_whole_and_some_are_empty():
    table = pa.table({"a": list(range(20))})
    sizes = []
    for seed in range(20):
        pieces = cut(table, seed, pieces=8)
        assert len(pieces) == 8
        assert pa.concat_tables(pieces).equals(table)
        sizes += [piece.num_rows for piece in pieces]
    assert 0 in sizes
    assert [piece.num_rows for piece in cut(table, 1, pieces=1)] == [20]
    assert [piece.num_rows for piece in cut(table.slice(0, 0), 1, pieces=3)] == [0, 0, 0]
