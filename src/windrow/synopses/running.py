"""Running synopsis (R-INT; thesis 2.3.4, 002 section 3): prefix sums over panes, for subtractable components.

A lookup is one subtraction per group whatever the window's length: f((a, b]) = f((-∞, b]) - f((-∞, a]). Update and
lookup O(groups), space O(panes · groups). Exact, because only integers are subtractable here and they may wrap.
Floats are not: a prefix that has seen 1e300 has lost what is small for ever, an infinity never leaves it, and prefixes
that keep every bit would be forty words wide. Floating sums go to the interval or the landmark synopsis, where a pane
that has expired is in no number that is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.aggregates import Component, Subtractable
from windrow.kernels import prefix
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.memory import pooled
from windrow.synopses.synopsis import Synopsis


class Running(Synopsis):
    """Row k holds the sums before pane k; one row more than panes."""

    name = "running"
    _extra_rows = 1

    def __init__(self, component: Component, groups: int = 0) -> None:
        super().__init__(component, groups)
        self._matrix.stop = 1

    @classmethod
    def admit(cls, component: Component) -> None:
        """Only what can be subtracted."""
        if not isinstance(component, Subtractable):
            raise ValueError(
                "a running synopsis subtracts what has left the window from a total, and that cannot be done with "
                f"{component.told}; use an interval, landmark or basic_interval synopsis"
            )

    def _append(self, partials: Ints, order: Ints) -> None:
        matrix = self._matrix
        matrix.reserve(len(order))
        data, at = matrix.data, matrix.stop - 1
        width = partials.shape[2]
        if width < data.shape[2]:
            # Columns beyond the partials' width have no rows yet: their sums stay 0.
            data[at + 1 : at + 1 + len(order), :, width:] = 0
        prefix.append_prefixes(data, at, partials, order, width)
        matrix.stop += len(order)

    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """One subtraction per answer and word."""
        start = self._matrix.start
        prefix.subtract_prefixes(self._matrix.data, first + start, last + start, groups, offsets, present, out)

    @property
    def prefixes(self) -> Ints:
        """The sums [panes + 1, words, groups] before each pane, and after the last."""
        return self._matrix.rows

    def count_present(self, first: Ints, last: Ints, groups: int) -> Ints:
        """For a row count: offsets [windows + 1] of the groups that have rows in each window."""
        offsets = np.empty(len(first) + 1, np.int64)
        start = self._matrix.start
        prefix.count_present(self._matrix.data, first + start, last + start, groups, offsets)
        return offsets

    def list_present(self, first: Ints, last: Ints, groups: int, offsets: Ints) -> Codes:
        """For a row count: the groups that have rows in each window, ascending."""
        present = pooled(int(offsets[-1]), np.int32)
        start = self._matrix.start
        prefix.list_present(self._matrix.data, first + start, last + start, groups, offsets, present)
        return present

    def live(self, groups: int) -> Ints:
        """For a row count: the rows of each group in all panes."""
        data = self._matrix.data
        return np.asarray(data[self._matrix.stop - 1, 0, :groups] - data[self._matrix.start, 0, :groups])

    def table(self, groups: int) -> Ints:
        """For a row count: the rows of each group before each pane, and after the last."""
        return self._matrix.rows[:, 0, :groups]

    def leaves(self) -> Ints:
        """Differences of neighbours."""
        return np.ascontiguousarray(np.diff(self.words, axis=0).swapaxes(0, 1))

    def partials(self, panes: Any, groups: Any) -> Ints:
        """Differences of neighbours."""
        rows = self._matrix.rows
        return np.asarray((rows[panes + 1, :, groups] - rows[panes, :, groups]).T)
