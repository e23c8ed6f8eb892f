"""Rows chosen by ORDER BY, LIMIT and OFFSET are those of one sort of all rows by all keys."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.ordering import SortKey, choose

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NEGATIVE_NAN = math.copysign(math.nan, -1.0)
RANKED = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
# Few distinct values, so that ties are common, and the extremes of each type.
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(0, 3) | INT64 | st.sampled_from([-(1 << 63), (1 << 63) - 1]),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, NEGATIVE_NAN]) | st.floats(),
    pa.float32(): st.sampled_from([0.0, 1.5, -1.5, math.inf, math.nan]),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "b", "é", "ab", "Z"]),
    pa.date32(): st.dates(datetime.date(1999, 12, 30), datetime.date(2000, 1, 2)),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(1971, 1, 1)),
    pa.decimal128(5, 2): st.decimals(-2, 2, places=2),
    pa.list_(pa.int64()): st.lists(st.integers(-2, 2), max_size=3),
    RANKED: st.lists(
        st.fixed_dictionaries({"value": st.sampled_from(["", "a", "é"]), "count": st.integers(1, 2)}), max_size=3
    ),
}


def full_sort(
    offsets: np.ndarray, keys: list[SortKey], kept: np.ndarray | None, count: int | None, skip: int
) -> list[int]:
    """The plain version: every row of a window compared with every other by all keys."""
    columns = [key.values.to_pylist() for key in keys]

    def compare(left: int, right: int) -> int:
        for key, column in zip(keys, columns, strict=True):
            a, b = column[left], column[right]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == key.nulls_first else 1
            elif sign := above(a, b) - above(b, a):
                return -sign if key.descending else sign
        return left - right

    result: list[int] = []
    for start, stop in itertools.pairwise(offsets):
        rows = [row for row in range(start, stop) if kept is None or kept[row]]
        rows.sort(key=functools.cmp_to_key(compare))
        result += rows[skip : None if count is None else skip + count]
    return result


def above(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        a, b = ([tuple(one.values()) if isinstance(one, dict) else one for one in each] for each in (a, b))
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return not math.isnan(b)
    return bool(a > b)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[np.ndarray, list[SortKey], np.ndarray | None]:
    lengths = draw(st.lists(st.integers(0, 12), max_size=6))
    offsets = np.cumsum([0, *lengths])
    rows = int(offsets[-1])
    keys = []
    for kind in draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4)):
        values = VALUES[kind] | st.none() if draw(st.booleans()) else VALUES[kind]
        # Arrays that begin inside their buffer: the columns of a query are slices of a larger lookup.
        array = pa.array(draw(st.lists(values, min_size=rows + 1, max_size=rows + 1)), kind)[1:]
        keys.append(SortKey(array, draw(st.booleans()), draw(st.booleans())))
    kept = draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows))
    return offsets, keys, None if kept is None else np.array(kept, bool)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(
    inputs(),
    st.none() | st.integers(0, 14) | st.just((1 << 63) - 1),
    st.integers(0, 5) | st.just((1 << 63) - 1),
)
def test_the_rows_are_those_of_a_full_sort(
    rows: tuple[np.ndarray, list[SortKey], np.ndarray | None], count: int | None, skip: int
) -> None:
    assert choose(*rows, count, skip).tolist() == full_sort(*rows, count, skip)


@pytest.mark.parametrize("distinct", [1, 3, 100, 1 << 40])
@pytest.mark.parametrize("count", [1, 10, 999])
def test_long_windows(distinct: int, count: int) -> None:
    """Heaps with many levels; with few distinct values nearly every row ties and later keys decide."""
    generator = np.random.default_rng(distinct)
    offsets = np.array([0, 1000, 1000, 1500, 1507])
    columns = [generator.integers(distinct, size=1507) for _ in range(3)]
    keys = [SortKey(pa.array(column), descending=i != 1) for i, column in enumerate(columns)]
    assert choose(offsets, keys, None, count, 2).tolist() == full_sort(offsets, keys, None, count, 2)


@pytest.mark.parametrize("step", [1, -1])
def test_sorted_windows(step: int) -> None:
    keys = [SortKey(pa.array(np.arange(3000)[::step]))]
    offsets = np.array([0, 1000, 3000])
    assert choose(offsets, keys, None, 100, 5).tolist() == full_sort(offsets, keys, None, 100, 5)


def test_later_keys_are_asked_about_ties_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def take(self: SortKey, rows: np.ndarray) -> SortKey:
        lengths.append(len(rows))
        return SortKey(self.values.take(pa.array(rows)), self.descending, self.nulls_first)

    monkeypatch.setattr(SortKey, "take", take)
    keys = [SortKey(pa.array(np.arange(1000) // 10)), SortKey(pa.array(np.arange(1000)[::-1]))]
    assert choose(np.array([0, 1000]), keys, None, 3, 0).tolist() == [9, 8, 7]
    assert max(lengths) == 10
