"""The dictionary of groups agrees with a Python dict, for every type of key, with NULLs, across batches and purges."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.synopses import codes
from windrow.synopses.groups import Groups
from windrow.synopses.snapshot import pack, unpack

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.uint16(): st.integers(0, 65535),
    pa.int32(): st.integers(-5, 5) | st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-5, 5) | st.integers(-(1 << 63), (1 << 63) - 1),
    pa.uint64(): st.integers(0, (1 << 64) - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 1e300]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, 0.5, -2.0]),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.string(): st.text(max_size=2),
    pa.large_string(): st.text(max_size=2),
    pa.binary(): st.binary(max_size=2),
    pa.decimal128(30, 2): st.decimals(-100, 100, places=2),
    pa.decimal256(60, 0): st.integers(-(10**59), 10**59).map(Decimal),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["a", "b", "c"]),
}


def plain(value: Any) -> Any:
    """A key that compares as SQL groups do."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def key_rows(groups: Groups, gids: Any) -> list[tuple[Any, ...]]:
    columns = groups.keys(gids)
    assert [column.type for column in columns] == list(groups.key_types)
    return list(zip(*(map(plain, column.to_pylist()) for column in columns), strict=True))


@pytest.mark.parametrize("kinds", [[kind] for kind in VALUES] + [[pa.int32(), pa.string()], [pa.int64()] * 3], ids=str)
@settings(derandomize=True, max_examples=25, deadline=None)
@given(data=st.data())
def test_lock_step_with_a_dict(kinds: list[pa.DataType], data: st.DataObject) -> None:
    groups = Groups(kinds)
    known: dict[tuple[Any, ...], int] = {}
    for _ in range(3):
        row = st.tuples(*(st.none() | VALUES[kind] for kind in kinds))
        rows = data.draw(st.lists(row, min_size=1, max_size=20))
        columns = [pa.array([one[i] for one in rows], kind) for i, kind in enumerate(kinds)]
        gids = groups.encode(columns).copy()
        assert gids.dtype == np.int32
        wanted = [tuple(map(plain, one)) for one in rows]
        for key, gid in zip(wanted, gids.tolist(), strict=True):
            assert known.setdefault(key, gid) == gid
        assert len(set(known.values())) == len(known) == len(groups)
        assert key_rows(groups, gids) == wanted

        live = sorted(data.draw(st.sets(st.sampled_from(sorted(known.values())))))
        groups.compact(np.array(live, np.int64))
        known = {key: live.index(gid) for key, gid in known.items() if gid in live}
        assert len(groups) == len(live)

        _, arrays = unpack(pack({}, groups.snapshot()))
        restored = Groups(kinds)
        restored.restore(arrays)
        assert key_rows(restored, np.arange(len(live))) == key_rows(groups, np.arange(len(live)))
        groups = restored


def test_slices_of_arrays_are_read_at_their_offset() -> None:
    groups = Groups([pa.int32(), pa.string(), pa.bool_()])
    columns = [pa.array([1, None, 3, 4]), pa.array(["a", "b", None, "d"]), pa.array([True, False, None, True])]
    gids = groups.encode([column.cast(kind)[1:3] for column, kind in zip(columns, groups.key_types, strict=True)])
    assert key_rows(groups, gids) == [(None, "b", False), (3, None, None)]


def test_many_distinct_keys_grow_the_tables() -> None:
    groups = Groups([pa.int64()])
    values = np.random.default_rng(2).integers(-(1 << 62), 1 << 62, 200_000)
    gids = groups.encode([pa.array(values)]).copy()
    assert len(groups) == len(np.unique(values))
    assert np.array_equal(groups.keys(gids)[0].to_numpy(), values)
    big = groups.nbytes
    groups.compact(np.arange(10))
    assert len(groups) == 10
    assert groups.nbytes < big / 1000


def test_no_key_columns_is_one_group() -> None:
    assert len(Groups([])) == 1
    assert Groups([]).keys(np.zeros(3, np.int32)) == []


def test_decimal_keys_come_back_exact() -> None:
    groups = Groups([pa.decimal128(38, 4)])
    gids = groups.encode([pa.array([Decimal("1.2500"), None, Decimal("-7")], pa.decimal128(38, 4))])
    assert groups.keys(gids)[0].to_pylist() == [Decimal("1.2500"), None, Decimal("-7.0000")]


def test_strings_of_every_length_are_told_apart() -> None:
    # Eight bytes are hashed and compared at a time: differences before, at and after such borders.
    values = [letter * size + end for letter in "ab" for size in range(40) for end in ("", "x", "é")]
    groups = Groups([pa.string()])
    gids = groups.encode([pa.array(values * 2)]).copy()
    assert len(groups) == len(set(values))
    assert groups.keys(gids)[0].to_pylist() == values * 2


@pytest.mark.parametrize("values", [[-(1 << 63)], [(1 << 63) - 1], [0, (1 << 63) - 1], [(1 << 63) - 2, (1 << 63) - 1]])
def test_the_least_and_the_greatest_integer(values: list[int]) -> None:
    groups = Groups([pa.int64()])
    for i, value in enumerate(values):
        assert groups.encode([pa.array([value])]).tolist() == [i]
    assert groups.keys(np.arange(len(values)))[0].to_pylist() == values


@pytest.mark.parametrize("step", [1, -1])
def test_tables_are_seldom_rebuilt_for_keys_that_grow_or_fall(step: int) -> None:
    encoder = codes.IntEncoder(pa.int64())
    tables = []
    for i in range(0, 50_000, 5):
        encoder.encode(pa.array(step * np.arange(i, i + 5)))
        if not tables or tables[-1] is not encoder._codes._table:
            tables.append(encoder._codes._table)
    assert len(tables) < 50


def test_strings_that_were_read_stay_as_they_were() -> None:
    groups = Groups([pa.string()])
    groups.encode([pa.array(["a", "bc"])])
    before = groups.keys(np.arange(2))[0], groups.snapshot()["0.values"]
    groups.encode([pa.array([f"more {i}" for i in range(1000)])])
    groups.compact(np.array([1, 700]))
    assert [array.to_pylist() for array in before] == [["a", "bc"]] * 2
    assert groups.keys(np.arange(2))[0].to_pylist() == ["bc", "more 698"]
