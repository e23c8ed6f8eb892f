"""Basic interval synopsis (B-INT; thesis 2.3.4, 002 section 3): the partials of single panes, for any component.

A lone lookup combines the panes of its window. Lookups of many windows that advance together use two stacks
(Tangwongsan et al. 2017): at most three combines per pane that enters and one per answer, whatever the window's
length. Update O(groups), space O(panes · groups).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.combine import slide_panes
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.synopsis import Synopsis


class BasicInterval(Synopsis):
    """Row k holds the partials of pane k."""

    name = "basic_interval"

    def _append(self, partials: Ints, order: Ints) -> None:
        matrix = self._matrix
        matrix.reserve(len(order))
        width = partials.shape[2]
        rows = matrix.data[matrix.stop : matrix.stop + len(order)]
        rows[:, :, :width] = partials[:, order].swapaxes(0, 1)
        rows[:, :, width:] = matrix.identity[None, :, None]
        matrix.stop += len(order)

    def answer(self, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints) -> None:
        """Two stacks over all windows of the call."""
        matrix, start = self._matrix, self._matrix.start
        op, identity = self.component.op, matrix.identity
        slide_panes(op, matrix.data, first + start, last + start, groups, identity, offsets, present, out)

    def partials(self, panes: Any, groups: Any) -> Ints:
        """As they are stored."""
        return np.asarray(self._matrix.rows(self._matrix.stride)[panes, :, groups].T)
