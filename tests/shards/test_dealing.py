"""Equal keys go to one shard, everywhere and always; different ones are spread."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.shards.dealing import deal

WHEN = datetime(2026, 1, 2, 3, 4, 5)
EQUAL = [
    [pa.array([7, -1], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())],
    [pa.array([7, 9], kind) for kind in (pa.uint8(), pa.uint32(), pa.int64())],
    [pa.array([0.0, math.nan]), pa.array([-0.0, -math.nan])],
    [
        pa.array(["x", "long enough for two blocks"], kind)
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ],
    [pa.array(["x", "y"]), pa.array(["x", "y"]).dictionary_encode()],
    [pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(digits, 2)) for digits in (5, 18, 38)],
    [pa.array([WHEN], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    [pa.array([date(2026, 1, 2)], kind) for kind in (pa.date32(), pa.date64())],
    [pa.array([None, None], kind) for kind in (pa.int32(), pa.string(), pa.float64(), pa.bool_(), pa.null())],
]


@pytest.mark.parametrize("columns", EQUAL, ids=lambda columns: str(columns[0].type))
def test_equal_keys_go_to_one_shard(columns: list[pa.Array]) -> None:
    for shards in (1, 2, 3, 97):
        homes = [deal(column, shards).tolist() for column in columns]
        assert all(one == homes[0] for one in homes)
        assert all(0 <= home < shards for home in homes[0])


def test_chunks_slices_and_nulls_change_nothing() -> None:
    column = pa.array(["a", None, "b", "", "a", None, "c"])
    homes = deal(column, 5).tolist()
    assert deal(pa.chunked_array([column[:3], column[3:]]), 5).tolist() == homes
    assert deal(column[2:], 5).tolist() == homes[2:]
    assert deal(pa.chunked_array([], pa.string()), 5).tolist() == []


def test_the_shard_of_a_key_is_the_same_in_every_version() -> None:
    """What is in a checkpoint of a shard must be found there by later tuples."""
    assert deal(pa.array(range(8)), 5).tolist() == [4, 2, 4, 4, 1, 2, 0, 4]
    assert deal(pa.array(["", "a", "ab", "longer than sixteen bytes"]), 5).tolist() == [0, 1, 0, 2]


@given(start=st.integers(-(1 << 60), 1 << 60), step=st.sampled_from([1, 2, 60, 1000, 1 << 20]))
def test_keys_are_spread(start: int, step: int) -> None:
    counts = np.bincount(deal(pa.array(start + step * np.arange(4000)), 4), minlength=4)
    assert counts.min() > 800


def test_there_is_at_least_one_shard() -> None:
    with pytest.raises(ValueError, match="at least one shard, not to 0"):
        deal(pa.array([1]), 0)
