"""The grid has every edge that is needed, and not many more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows.grid import Grid, edges_of
from windrow.windows.spec import MAX_TICK

SECOND = 1_000_000
progressions = st.lists(st.tuples(st.integers(1, 60), st.integers(-100, 100)), min_size=1, max_size=5)


@settings(derandomize=True, max_examples=200)
@given(progressions, st.integers(-500, 500))
def test_ceil_is_the_next_edge_of_the_grid_and_no_needed_edge_is_skipped(
    needed: list[tuple[int, int]], ts: int
) -> None:
    grid = Grid.of(needed)
    on_grid = [t for t in range(ts, ts + 61) if any((t - phase) % step == 0 for step, phase in grid.progressions)]
    assert grid.ceil(ts) == on_grid[0]
    assert grid.covers(needed)
    first_needed = min(t for t in range(ts, ts + 61) if any((t - phase) % step == 0 for step, phase in needed))
    assert grid.ceil(ts) <= first_needed


def test_windows_that_fit_one_step_give_one_uniform_grid() -> None:
    needed = [*edges_of(600 * SECOND, 60 * SECOND), *edges_of(90 * SECOND, 30 * SECOND), *edges_of(None, 20 * SECOND)]
    grid = Grid.of(needed)
    assert grid == Grid(((10 * SECOND, 0),))
    assert grid.describe() == "panes of 10000000 ticks"


def test_a_range_one_microsecond_off_does_not_make_panes_of_a_microsecond() -> None:
    grid = Grid.of(edges_of(10 * SECOND + 1, SECOND))
    assert not grid.uniform
    assert grid.describe() == "edges of 2 progressions"
    assert [grid.ceil(t) for t in (0, 1, SECOND - 1, SECOND)] == [0, SECOND - 1, SECOND - 1, SECOND]


def test_a_progression_within_another_adds_nothing() -> None:
    assert Grid.of([(SECOND, 1), (SECOND, 5), (7 * SECOND, 1)]) == Grid.of([(SECOND, 1), (SECOND, 5)])


def test_covers_is_false_for_edges_between_panes() -> None:
    grid = Grid.of([(10, 0)])
    assert grid.covers([(20, 10), (30, 0)])
    assert not grid.covers([(5, 0)])
    assert not grid.covers([(10, 3)])


def test_offsets_move_both_edges() -> None:
    assert edges_of(10, 4, 1) == ((4, 3), (4, 1))
    assert edges_of(None, 4, 1) == ((4, 3),)


def test_edges_stop_at_the_last_tick() -> None:
    assert Grid.of([(10, 0)]).ceil(MAX_TICK) == MAX_TICK
    assert Grid.of([(10, 0)]).ceil(-MAX_TICK - 1) == -9223372036854775800


@pytest.mark.parametrize("bad", [[], [(0, 0)], [(-5, 0)], [(1 << 63, 0)]])
def test_a_grid_without_a_step_is_refused(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="grid"):
        Grid.of(bad)
