"""Scatter of one batch into accumulators: acc[cell[i]] takes values[i]. NULLs are filtered out before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Floats, Ints, kernel


@kernel
def count_slots(slots: Codes, counts: Ints) -> None:
    """Rows per pane when there is one group only."""
    for i in range(slots.size):
        counts[slots[i]] += 1


@kernel
def count_cells(slots: Codes, gids: Codes, stride: int, cells: Codes, counts: Ints) -> None:
    """cell = slot * stride + gid, and the row count of each cell in the same pass."""
    for i in range(slots.size):
        cell = slots[i] * stride + gids[i]
        cells[i] = cell
        counts[cell] += 1


@kernel
def add_ints(acc: Ints, cells: Codes, values: NDArray[Any]) -> None:
    """Wrapping sum."""
    for i in range(cells.size):
        acc[cells[i]] += values[i]


@kernel
def add_wide_ints(low: Ints, high: Ints, cells: Codes, values: Ints) -> None:
    """Sum of the low 32 bits and of the (arithmetic) high 32 bits: neither can overflow below 2**31 rows."""
    for i in range(cells.size):
        cell = cells[i]
        value = values[i]
        low[cell] += value & 0xFFFFFFFF
        high[cell] += value >> 32


@kernel
def add_floats(sums: Floats, errors: Floats, cells: Codes, values: Floats) -> None:
    """Compensated sum (Knuth's TwoSum): the rounding error of every addition is kept in `errors`."""
    for i in range(cells.size):
        cell = cells[i]
        a = sums[cell]
        b = values[i]
        total = a + b
        part = total - a
        errors[cell] += (a - (total - part)) + (b - part)
        sums[cell] = total


@kernel
def min_ints(acc: Ints, cells: Codes, values: NDArray[Any]) -> None:
    """Smallest value."""
    for i in range(cells.size):
        cell = cells[i]
        acc[cell] = min(acc[cell], values[i])


@kernel
def max_ints(acc: Ints, cells: Codes, values: NDArray[Any]) -> None:
    """Greatest value."""
    for i in range(cells.size):
        cell = cells[i]
        acc[cell] = max(acc[cell], values[i])


@kernel
def add_moments(counts: Floats, means: Floats, squares: Floats, cells: Codes, values: NDArray[Any]) -> None:
    """Welford's update of (n, mean, M2)."""
    for i in range(cells.size):
        cell = cells[i]
        value = np.float64(values[i])
        n = counts[cell] + 1.0
        delta = value - means[cell]
        mean = means[cell] + delta / n
        counts[cell] = n
        means[cell] = mean
        squares[cell] += delta * (value - mean)


@kernel
def order_floats(values: Floats, bits: Ints, out: Ints) -> None:
    """Floats as int64 of the same order; -0.0 becomes 0.0, every NaN the greatest. `bits` is a view of `values`."""
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            out[i] = 0x7FF8000000000000
        elif value == 0.0:
            out[i] = 0
        else:
            bit = bits[i]
            out[i] = bit ^ ((bit >> 63) & 0x7FFFFFFFFFFFFFFF)
