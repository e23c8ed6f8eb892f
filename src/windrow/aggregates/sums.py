"""Sums: exact for integers and decimals, compensated for floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.component import Component, Subtractable
from windrow.errors import QueryError
from windrow.kernels import combine
from windrow.kernels.accumulate import add_floats, add_ints, add_wide_ints
from windrow.kernels.jit import Codes, Ints


@dataclass(frozen=True)
class SumInts(Subtractable):
    """Sum of integers of at most 32 bits in one word: exact for windows below 2**31 rows, prefix sums may wrap."""

    name = "sum_ints"
    op = combine.ADD

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """As int32 or int64."""
        return columns.ints(values)

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Wrapping addition."""
        add_ints(words[0], cells, values)


@dataclass(frozen=True)
class SumWideInts(Subtractable):
    """Sum of int64 or unscaled decimals: the sums of the low and of the high halves, exact below 2**31 rows."""

    name = "sum_wide_ints"
    op = combine.ADD
    dtypes = (np.int64, np.int64)

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """As int64."""
        return columns.unscaled(values) if pa.types.is_decimal(values.type) else columns.ints(values)

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Half by half."""
        add_wide_ints(words[0], words[1], cells, values)


@dataclass(frozen=True)
class SumFloats(Component):
    """Compensated sum of floats: (sum, sum of its rounding errors).

    Not subtractable: a prefix sum loses what is small beside it for ever, and an infinity or NaN never leaves it.
    """

    name = "sum_floats"
    told = "a sum of DOUBLE or FLOAT, which would keep the rounding errors of all that has left"
    op = combine.ADD_FLOATS
    dtypes = (np.float64, np.float64)

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """As float64."""
        return columns.floats(values)

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """TwoSum."""
        add_floats(words[0].view(np.float64), words[1].view(np.float64), cells, values)


def narrow(low: Ints, high: Ints, valid: NDArray[np.bool_]) -> Ints:
    """The int64 sums of the halves; raises QueryError when one of those that count does not fit."""
    top = high + (low >> 32)
    if bool(np.any(((top >> 31) != (top >> 63)) & valid)):
        raise QueryError(
            "SUM over BIGINT exceeds the 64-bit range in some window; sum CAST(x AS DOUBLE) or a shorter window instead"
        )
    total: Ints = (top << 32) | (low & 0xFFFFFFFF)
    return total


def widen(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The 128-bit sums of the halves, as (low word, high word)."""
    top = high + (low >> 32)
    return (top << 32) | (low & 0xFFFFFFFF), top >> 32


def approximate(low: Ints, high: Ints) -> NDArray[np.float64]:
    """The sums of the halves as float64, for averages: right also beyond int64."""
    top, rest = high + (low >> 32), low & 0xFFFFFFFF
    fits = (top >> 31) == (top >> 63)
    exact = ((top << 32) | rest).astype(np.float64)
    return np.where(fits, exact, top * 4294967296.0 + rest)


def settle(sums: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The compensated sum; the errors of an infinite or NaN sum mean nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(sums), sums + errors, sums)
