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
from windrow.operators.exact_digits import ExactDigits
from windrow.operators.group_events import Events, Kept, Part
from windrow.synopses.snapshot import numpy_of


class RunningFloats(Kept):
    """The exact sums of one value, and how many values are not finite."""

    kind = "exact sums"

    def __init__(self, part: Part) -> None:
        self.parts = (part,)
        self._digits = ExactDigits()
        self._specials: Ints = np.zeros((0, 3), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._digits.values.nbytes + self._specials.nbytes

    def grow(self, groups: int, slots: int) -> None:
        """Zero for new groups."""
        self._digits.grow(groups)
        if groups > len(self._specials):
            more = np.zeros((groups - len(self._specials), 3), np.int64)
            self._specials = np.concatenate([self._specials, more])

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._digits.keep(live)
        self._specials = self._specials[live]

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """One sweep along the cells."""
        (part,) = self.parts
        assert part[1] is not None
        bits = frozen(columns.floats(events.values[part[1]])).view(np.int64)
        valid = events.valid(part[1])
        self._digits.span(*digits_of(bits, valid))
        sums = np.zeros(events.count, np.float64)
        sweep_sums(
            events.by_cell, events.cells, events.groups, events.sign, valid, bits,
            self._digits.base, self._digits.values, self._specials, sums,
        )  # fmt: skip
        # The second word holds rounding errors, of which there are none.
        return {part: (sums, np.zeros(events.count, np.float64))}

    def snapshot(self, groups: int) -> dict[str, Any]:
        """The digits."""
        return {**self._digits.snapshot(groups), "specials": self._specials[:groups].reshape(-1)}

    def restore(self, arrays: Mapping[str, Any], *_: Any) -> None:
        """The digits."""
        self._specials = numpy_of(arrays["specials"]).reshape(-1, 3)
        self._digits.restore(arrays, len(self._specials))
