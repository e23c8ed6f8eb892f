"""Sums of doubles by group that rows may leave: exact, so that no error stays behind, and rounded once when read.

The totals are fixed-point numbers (kernels/exact_sums.py): O(1) per event, O(digits) per answer and per group, where
the digits are as many as the values span (three or four for data of like size, 67 at most).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from windrow.aggregates import columns
from windrow.kernels.exact_sums import digits_of, sweep_sums
from windrow.kernels.jit import Ints, frozen
from windrow.operators.group_events import Events, Kept, Part
from windrow.synopses.snapshot import numpy_of


class RunningFloats(Kept):
    """The exact sums of one value, [groups, digits]."""

    kind = "exact sums"

    def __init__(self, part: Part) -> None:
        self.parts = (part,)
        self._base = 0
        self._digits: Ints = np.zeros((0, 0), np.int64)
        self._specials: Ints = np.zeros((0, 3), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._digits.nbytes + self._specials.nbytes

    def grow(self, groups: int, slots: int) -> None:
        """Zero for new groups."""
        known, digits = self._digits.shape
        if groups > known:
            self._digits = np.concatenate([self._digits, np.zeros((groups - known, digits), np.int64)])
            self._specials = np.concatenate([self._specials, np.zeros((groups - known, 3), np.int64)])

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._digits, self._specials = self._digits[live], self._specials[live]

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """One sweep along the cells."""
        (part,) = self.parts
        assert part[1] is not None
        bits = frozen(columns.floats(events.values[part[1]])).view(np.int64)
        valid = events.valid(part[1])
        self._span(*digits_of(bits, valid))
        sums = np.zeros(events.count, np.float64)
        sweep_sums(
            events.by_cell, events.cells, events.groups, events.sign, valid, bits,
            self._base, self._digits, self._specials, sums,
        )  # fmt: skip
        # The second word holds rounding errors, of which there are none.
        return {part: (sums, np.zeros(events.count, np.float64))}

    def _span(self, low: int, high: int) -> None:
        """Make room for these digits."""
        groups, count = self._digits.shape
        if high == 0 or (low >= self._base and high <= self._base + count):
            return
        if count:
            low, high = min(low, self._base), max(high, self._base + count)
        digits = np.zeros((groups, high - low), np.int64)
        digits[:, self._base - low : self._base - low + count] = self._digits if count else 0
        self._base, self._digits = low, digits

    def snapshot(self, groups: int) -> dict[str, Any]:
        """The digits."""
        shape = np.array([self._base, self._digits.shape[1]], np.int64)
        digits, specials = self._digits[:groups].reshape(-1), self._specials[:groups].reshape(-1)
        return {"shape": shape, "digits": digits, "specials": specials}

    def restore(self, arrays: Mapping[str, Any], *_: Any) -> None:
        """The digits."""
        self._base, count = (int(one) for one in numpy_of(arrays["shape"]))
        self._specials = numpy_of(arrays["specials"]).reshape(-1, 3)
        self._digits = numpy_of(arrays["digits"]).reshape(len(self._specials), count)
