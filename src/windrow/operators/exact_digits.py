"""The digits of exact sums by group, as many as the values span: see kernels/exact_sums.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.snapshot import numpy_of


class ExactDigits:
    """`values` [groups, digits]: digit `base` + k of the sum of each group."""

    def __init__(self) -> None:
        self.base = 0
        self.values: Ints = np.zeros((0, 0), np.int64)

    def grow(self, groups: int) -> None:
        """Zero for new groups."""
        known, digits = self.values.shape
        if groups > known:
            self.values = np.concatenate([self.values, np.zeros((groups - known, digits), np.int64)])

    def keep(self, live: Ints) -> None:
        """Group live[k] becomes k."""
        self.values = self.values[live]

    def span(self, low: int, high: int) -> None:
        """Make room for the digits low … high-1; high = 0 needs none."""
        groups, count = self.values.shape
        if high == 0 or (low >= self.base and high <= self.base + count):
            return
        if count:
            low, high = min(low, self.base), max(high, self.base + count)
        digits = np.zeros((groups, high - low), np.int64)
        digits[:, self.base - low : self.base - low + count] = self.values if count else 0
        self.base, self.values = low, digits

    def snapshot(self, groups: int) -> dict[str, Any]:
        """Named arrays."""
        shape = np.array([self.base, self.values.shape[1]], np.int64)
        return {"shape": shape, "digits": self.values[:groups].reshape(-1)}

    def restore(self, arrays: Mapping[str, Any], groups: int) -> None:
        """Become what `snapshot` gave."""
        self.base, count = (int(one) for one in numpy_of(arrays["shape"]))
        self.values = numpy_of(arrays["digits"]).reshape(groups, count)
