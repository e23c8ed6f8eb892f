"""Basic interval synopsis (thesis 2.3.4): the partials of single panes, for any component.

A lone lookup combines the b panes of its window. Windows that advance together slide, and windows that end together
are answered by one scan of b panes, however many they are (see `combining`): with at least b / log b of them this is
the fastest synopsis, and it is the smallest (thesis 8.3.1). Update O(groups), space O(panes · groups).
"""

from __future__ import annotations

from windrow.synopses.combining import Combining


class BasicInterval(Combining):
    """Row k holds the partials of pane k."""

    name = "basic_interval"

    def _cover_cost(self, slide: int, dyadic: int, marked: int) -> int:
        # A cover is all the panes of the window, which is what a slide begins with.
        return slide
