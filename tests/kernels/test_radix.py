"""Pairs in order: as NumPy sorts them, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.radix import FEW, order_pairs


@pytest.mark.parametrize("rows", [0, 1, FEW - 1, FEW, 60_000])
@pytest.mark.parametrize("span", [1, 100, 1 << 20, (1 << 63) - 1])
def test_order(rows: int, span: int) -> None:
    rng = np.random.default_rng(rows)
    first = rng.integers(-span, span, rows)
    second = rng.integers(-(1 << 63), (1 << 63) - 1, rows)
    second[: rows // 2] %= 5
    if rows:
        first[0], first[-1] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert np.array_equal(order_pairs(first, second), np.lexsort((second, first)))
