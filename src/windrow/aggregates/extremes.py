"""MIN and MAX as int64 of the same order: ints, dates, times, short decimals as they are, floats by their bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.component import Component
from windrow.kernels import combine
from windrow.kernels.accumulate import max_ints, min_ints, order_floats
from windrow.kernels.jit import Codes, Ints
from windrow.language.types import numpy_dtype


class Extreme(Component):
    """What MIN and MAX have in common. Not subtractable; the same value twice changes nothing."""

    duplicate_insensitive = True

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """Integers of the same order as the values."""
        if pa.types.is_floating(values.type):
            return ordered(columns.floats(values))
        return columns.unscaled(values) if pa.types.is_decimal(values.type) else columns.ints(values)


@dataclass(frozen=True)
class Min(Extreme):
    """The smallest value; of nothing, the greatest int64."""

    name = "min"
    told = "a minimum"
    op = combine.MIN

    @property
    def identity(self) -> Ints:
        """The greatest int64."""
        return np.array([np.iinfo(np.int64).max])

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Keep the smaller."""
        min_ints(words[0], cells, values)


@dataclass(frozen=True)
class Max(Extreme):
    """The greatest value; of nothing, the smallest int64."""

    name = "max"
    told = "a maximum"
    op = combine.MAX

    @property
    def identity(self) -> Ints:
        """The smallest int64."""
        return np.array([np.iinfo(np.int64).min])

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Keep the greater."""
        max_ints(words[0], cells, values)


@dataclass(frozen=True)
class MinText(Min):
    """The smallest string: labels of the same order come from outside, and go back to strings there."""

    name = "min_text"


@dataclass(frozen=True)
class MaxText(Max):
    """The greatest string."""

    name = "max_text"


def ordered(values: NDArray[np.float64]) -> Ints:
    """Floats as int64 of the same order, NaN greatest, -0.0 equal to 0.0."""
    values = np.ascontiguousarray(values)
    out = np.empty(len(values), np.int64)
    order_floats(values, values.view(np.int64), out)
    return out


def unordered(codes: Ints) -> NDArray[np.float64]:
    """The inverse of `ordered`."""
    return np.asarray(codes ^ ((codes >> 63) & 0x7FFFFFFFFFFFFFFF)).view(np.float64)


def restored(codes: Ints, kind: pa.DataType, null: NDArray[np.bool_] | None) -> pa.Array:
    """The values behind the integers, in the type of the column."""
    if pa.types.is_floating(kind):
        return pa.array(unordered(codes).astype(numpy_dtype(kind), copy=False), mask=null)
    if null is not None:
        # The identity of MIN does not fit in a narrower type.
        codes = np.where(null, 0, codes)
    if pa.types.is_decimal(kind):
        wide = pa.decimal128(kind.precision, kind.scale)
        return columns.from_unscaled(codes, codes >> 63, wide, null).cast(kind)
    return columns.from_ints(codes, kind, null)
