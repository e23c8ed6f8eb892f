"""Moments for variance: count, mean and sum of squared distances from it (Welford 1962; Chan, Golub, LeVeque 1983)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.component import Component, Kind
from windrow.kernels import combine
from windrow.kernels.accumulate import add_moments
from windrow.kernels.jit import Codes, Ints


@dataclass(frozen=True)
class Moments(Component):
    """(n, mean, M2): stable where the sum of squares is not, and therefore not subtractable."""

    name = "moments"
    told = "a variance, which would keep the rounding errors of all that has left"
    op = combine.MOMENTS
    dtypes = (np.float64, np.float64, np.float64)
    kind = Kind.ALGEBRAIC

    def lift(self, values: pa.Array) -> NDArray[Any]:
        """As float64, int32 or int64; decimals lose their point here and get it back as a float64."""
        if pa.types.is_floating(values.type):
            return columns.floats(values)
        if pa.types.is_decimal(values.type):
            scale: float = 10.0**values.type.scale
            return columns.unscaled(values) / scale
        return columns.ints(values)

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Welford's update."""
        counts, means, squares = (word.view(np.float64) for word in words)
        add_moments(counts, means, squares, cells, values)
