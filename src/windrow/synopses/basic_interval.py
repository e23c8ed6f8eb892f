"""Basic interval synopsis (thesis 2.3.4): the partials of single panes, for any component.

A lone lookup combines the b panes of its window. Windows that advance together slide, and windows that end together
are answered by one scan of b panes, however many they are (see `combining`): with at least b / log b of them this is
the fastest synopsis, and it is the smallest (thesis 8.3.1). Update O(groups), space O(panes · groups).
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.combining import Combining


class BasicInterval(Combining):
    """Row k holds the partials of pane k."""

    name = "basic_interval"

    def _cover_cost(self, panes: int, dyadic: int, marked: int) -> int:
        # A cover is all the panes of the window, which is what a slide begins with.
        return panes

    def _room(self, first: Ints, last: Ints) -> int:
        return int((last - first).sum())

    def _covers(self, first: Ints, last: Ints, bounds: Ints, cover: Ints) -> int:
        bounds[0] = 0
        np.cumsum(last - first, out=bounds[1 : len(first) + 1])
        count = int(bounds[len(first)])
        skipped = np.repeat(first - bounds[: len(first)], last - first)
        cover[:count] = self._matrix.start + skipped + np.arange(count)
        return len(first)
