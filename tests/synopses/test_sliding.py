"""What moves when windows slide: each entry once in and once out, whatever RANGE / SLIDE is."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.synopses.collection import Windows
from windrow.synopses.sliding import Sliding

PANES = 1000


def sliding(first: np.ndarray, last: np.ndarray) -> Sliding:
    """One entry per pane, of one group."""
    offsets, present = np.arange(len(first) + 1), np.zeros(len(first), np.int32)
    windows = Windows(first, last, offsets, present, 1, np.arange(PANES))
    values = np.arange(PANES) % 37
    return Sliding(windows, first, last, (np.zeros(PANES, np.int64), values, np.ones(PANES, np.int64)))


@pytest.mark.parametrize("length", [1, 10, 100, 500])
def test_the_length_of_the_windows_costs_nothing(length: int) -> None:
    last = np.arange(length, PANES + 1)
    slid = sliding(last - length, last)
    assert slid.moved <= 2 * PANES
    assert slid.totals.tolist() == [length] * len(last)
    assert slid.distinct[0].tolist() == [min(length, 37)] * len(last)


def test_many_windows_that_end_together_cost_the_longest() -> None:
    first = np.random.default_rng(3).permutation(PANES)
    slid = sliding(first, np.full(PANES, PANES))
    assert slid.moved <= 2 * PANES
    assert slid.totals.tolist() == (PANES - first).tolist()


def test_queries_with_many_windows_each_are_visited_one_after_the_other() -> None:
    parts = [np.arange(length, PANES + 1) for length in (10, 400)]
    first = np.concatenate([parts[0] - 10, parts[1] - 400])
    assert sliding(first, np.concatenate(parts)).moved <= 4 * PANES


def test_windows_far_apart_do_not_look_at_what_is_between() -> None:
    first = np.arange(0, PANES, 100)
    assert sliding(first, first + 2).moved <= 4 * len(first)
