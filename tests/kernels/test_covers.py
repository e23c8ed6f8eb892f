"""The base intervals and landmark intervals of a window: disjoint, in order, complete, few; and weighed rightly."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.combine import weigh_slide
from windrow.kernels.dyadic import cover_dyadic, weigh_dyadic
from windrow.kernels.landmarks import cover_landmarks, weigh_landmarks
from windrow.synopses.workload import SHORT, landmark_steps

BOUNDS = st.tuples(st.integers(0, 5000) | st.integers(1 << 40, (1 << 40) + 5000), st.integers(0, 3000))


def panes_of_node(row: int) -> list[int]:
    """The panes of a row of the in-order layout: the trailing ones of its number are its level."""
    level = (~row & (row + 1)).bit_length() - 1
    start = (row + 1 - (1 << level)) // 2
    return list(range(start, start + (1 << level)))


def test_example_of_the_paper() -> None:
    """002, Example 3.1, counted from 1 there: (1, 43) begins with one interval of 32 here, since 0 is a multiple."""
    bounds, cover = np.empty(2, np.int64), np.empty(64, np.int64)
    cover_dyadic(np.array([1]), np.array([43]), 0, 0, bounds, cover)
    found = [(panes[0], panes[-1]) for panes in map(panes_of_node, cover[: bounds[1]].tolist())]
    assert found == [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 39), (40, 41), (42, 42)]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(BOUNDS)
def test_dyadic_cover(window: tuple[int, int]) -> None:
    first, width = window
    bounds, cover = np.empty(2, np.int64), np.empty(200, np.int64)
    base = first // 2
    one = np.array([first]), np.array([first + width])
    cover_dyadic(*one, 0, base, bounds, cover)
    rows = [row + 2 * base for row in cover[: bounds[1]].tolist()]
    assert [pane for row in rows for pane in panes_of_node(row)] == list(range(first, first + width))
    assert len(rows) == weigh_dyadic(*one, 0) <= 2 * max(1, width.bit_length())


@settings(derandomize=True, max_examples=200, deadline=None)
@given(BOUNDS, st.lists(st.integers(1, 3000), max_size=4))
def test_landmark_cover(window: tuple[int, int], lengths: list[int]) -> None:
    first, width = window
    steps = landmark_steps(lengths)
    bounds, cover = np.empty(2, np.int64), np.empty(width + 2, np.int64)
    one = np.array([first]), np.array([first + width])
    assert cover_landmarks(*one, 0, first, steps, bounds, cover) == 1
    rows = cover[: bounds[1]].tolist()
    panes: list[int] = []
    for row in rows:
        pane, part = divmod(row, 1 + 2 * len(steps))
        pane += first
        if part == 0:
            panes.append(pane)
        elif part % 2:
            step = int(steps[part // 2])
            panes += range(pane - pane % step, pane + 1)
        else:
            step = int(steps[part // 2 - 1])
            panes += range(pane, pane - pane % step + step)
    assert panes == list(range(first, first + width))
    assert len(rows) == weigh_landmarks(*one, 0, steps)
    if width in lengths:
        assert len(rows) <= (3 if width > SHORT else width)


def test_landmarks_stop_when_there_is_no_room() -> None:
    bounds, cover = np.empty(4, np.int64), np.empty(12, np.int64)
    first, last = np.array([0, 0, 0]), np.array([5, 5, 5])
    assert cover_landmarks(first, last, 0, 0, np.empty(0, np.int64), bounds, cover) == 2
    assert cover[:10].tolist() == [0, 1, 2, 3, 4] * 2


def test_the_weight_of_a_slide() -> None:
    """Advancing windows pay a few combines each; windows that go back pay for every pane."""
    start = np.arange(1000)
    assert weigh_slide(start, start + 100) < 4 * 1000 + 300
    assert weigh_slide(start[::-1].copy(), start[::-1] + 100) == 100 * 1000
