"""Variances by group that rows may leave: from exact sums of the values and of their squares.

What counts is which values a group has, not in which order they came and went: the answer is that of exact arithmetic,
rounded twice. O(1) per event, O(digits²) per answer, where the digits of a sum are as many as the values span (three or
four for data of like size); space O(digits) per group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from windrow.kernels.exact_sums import digits_of, square_digits_of, sweep_moments
from windrow.kernels.jit import Floats, Ints, frozen
from windrow.operators.exact_digits import ExactDigits
from windrow.operators.group_events import Events, Kept, Part
from windrow.synopses.snapshot import numpy_of, prefixed, within


class RunningMoments(Kept):
    """Count, sum and sum of squares of one value, all exact."""

    kind = "exact moments"

    def __init__(self, part: Part) -> None:
        self.parts = (part,)
        self._sums = ExactDigits()
        self._squares = ExactDigits()
        self._specials: Ints = np.zeros((0, 3), np.int64)
        self._counts: Ints = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        digits = self._sums.values.nbytes + self._squares.values.nbytes
        return digits + self._specials.nbytes + self._counts.nbytes

    def grow(self, groups: int, slots: int) -> None:
        """Zero for new groups."""
        more = groups - len(self._counts)
        if more > 0:
            self._sums.grow(groups)
            self._squares.grow(groups)
            self._specials = np.concatenate([self._specials, np.zeros((more, 3), np.int64)])
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._sums.keep(live)
        self._squares.keep(live)
        self._specials, self._counts = self._specials[live], self._counts[live]

    def step(self, events: Events) -> dict[Part, tuple[Any, ...]]:
        """One sweep along the cells."""
        (part,) = self.parts
        component, program = part
        assert program is not None
        lifted: Floats = np.ascontiguousarray(component.lift(events.values[program]), np.float64)
        bits, valid = frozen(lifted.view(np.int64)), events.valid(program)
        self._sums.span(*digits_of(bits, valid))
        self._squares.span(*square_digits_of(bits, valid))
        counts, means, distances = (np.zeros(events.count, np.float64) for _ in range(3))
        sweep_moments(
            events.by_cell, events.cells, events.groups, events.sign, valid, bits,
            self._sums.base, self._sums.values, self._squares.base, self._squares.values,
            self._specials, self._counts, means, distances, counts,
        )  # fmt: skip
        return {part: (counts, means, distances)}

    def snapshot(self, groups: int) -> dict[str, Any]:
        """The digits."""
        arrays = prefixed("sums", self._sums.snapshot(groups)) | prefixed("squares", self._squares.snapshot(groups))
        return arrays | {"specials": self._specials[:groups].reshape(-1), "counts": self._counts[:groups]}

    def restore(self, arrays: Mapping[str, Any], *_: Any) -> None:
        """The digits."""
        self._counts = numpy_of(arrays["counts"])
        self._specials = numpy_of(arrays["specials"]).reshape(-1, 3)
        self._sums.restore(within("sums", dict(arrays)), len(self._counts))
        self._squares.restore(within("squares", dict(arrays)), len(self._counts))
