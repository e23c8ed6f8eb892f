"""The pane kernel agrees with Grid.ceil on every row, in any order, at any distance."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.synopses.open_panes import OpenPanes
from windrow.windows.grid import Grid

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50) | st.integers(1, (1 << 63) - 1), INT64), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(-200, 200) | INT64, max_size=40), max_size=3),
)
def test_each_row_goes_to_the_pane_that_ceil_names(needed: list[tuple[int, int]], batches: list[list[int]]) -> None:
    grid = Grid.of(needed)
    panes = OpenPanes(grid)
    for batch in batches:
        slots = panes.assign(np.array(batch, np.int64))
        assert panes.edges[slots].tolist() == [grid.ceil(ts) for ts in batch]
        assert len(set(panes.edges.tolist())) == panes.count


def test_many_panes_in_one_batch() -> None:
    ts = np.random.default_rng(1).permutation(10_000).astype(np.int64) * 7
    panes = OpenPanes(Grid.of([(7, 0)]))
    slots = panes.assign(ts)
    assert np.array_equal(panes.edges[slots], ts)
    assert panes.count == len(ts)
