"""The last rows of each key, in lock-step with lists of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.numbering import last_rows
from windrow.numbering.last_rows import LastRows
from windrow.synopses.snapshot import pack, unpack

KEYS = st.one_of(st.none(), st.integers(0, 4))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small enough that windows are found in several parts, and rows are forgotten often."""
    monkeypatch.setattr(last_rows, "ROWS_AT_ONCE", 8)
    monkeypatch.setattr(last_rows, "FEWEST_SPARE", 2)
    monkeypatch.setattr(last_rows, "MANY_CHUNKS", 3)


@given(
    st.lists(st.lists(KEYS, min_size=1, max_size=12), max_size=10),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 4),
    st.integers(0, 10),
    st.booleans(),
)
def test_lock_step(
    batches: list[list[int | None]], count: int, skip: int, slide: int, origin: int, restart: bool
) -> None:
    kept = LastRows([pa.int64()])
    seen: list[tuple[int, int | None]] = []
    for keys in batches:
        numbers = np.arange(len(seen) + 1, len(seen) + 1 + len(keys))
        table = pa.table({"k": pa.array(keys, pa.int64()), "n": numbers})
        kept.append(table, ("k",), numbers)
        seen += zip(numbers.tolist(), keys, strict=True)
        due = np.array([n for n in numbers if n % slide == 0], np.int64)
        found: dict[int, list[int]] = {}
        for part in kept.contents(due, origin=origin, skip=skip, count=count):
            for window in range(part.count):
                rows = part.rows.column("n").to_numpy()[part.windows == window]
                found[int(due[part.first + window])] = sorted(rows.tolist())
        assert found == {n: _contents(seen, n, origin, skip, count) for n in due.tolist()}
        kept.settle(skip + count)
        assert len(kept) <= 2 * 6 * (skip + count) + 2 + 12
        if restart:
            meta, arrays, rows = kept.snapshot()
            kept = LastRows([pa.int64()])
            kept.restore(*unpack(pack(meta, arrays)), rows)


def _contents(seen: list[tuple[int, int | None]], upto: int, origin: int, skip: int, count: int) -> list[int]:
    by_key: dict[int | None, list[int]] = defaultdict(list)
    for number, key in reversed(seen):
        if origin < number <= upto:
            by_key[key].append(number)
    return sorted(number for numbers in by_key.values() for number in numbers[skip : skip + count])


def test_a_column_that_comes_later() -> None:
    kept = LastRows([pa.int64()])
    kept.append(pa.table({"k": [1, 2], "t": [1, 2]}), ("k",), np.array([1, 2]))
    kept.append(pa.table({"k": [1], "t": [3], "v": ["x"]}), ("k",), np.array([3]))
    assert kept.columns == {"k", "t"}
    (found,) = kept.contents(np.array([3]), origin=2, skip=0, count=5)
    assert found.rows.column("v").to_pylist() == ["x"]
