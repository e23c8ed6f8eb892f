"""The cost models, and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.scheduling.cost import KINDS, Kind, ProbeCost
from windrow.scheduling.task import SubGroup, Task

WINDOWS = st.lists(st.integers(1, 40), min_size=1, max_size=6).map(lambda found: tuple(sorted(found)))
SUB_GROUPS = st.lists(st.builds(SubGroup, st.integers(1, 12), WINDOWS, st.integers(0, 3)), min_size=1, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
@given(members=SUB_GROUPS, data=st.data())
def test_the_parts_add_up_to_the_cost(kind: Kind, members: list[SubGroup], data: st.DataObject) -> None:
    cost = ProbeCost(kind, combine=2, post=0.5, start=3, read=0.1, intervals=data.draw(st.sampled_from([None, 64])))
    parts = cost.parts(members)
    some = data.draw(st.sets(st.sampled_from(range(len(members))), min_size=1))
    needed = np.any([parts.needs[i] for i in some], axis=0)
    covered = float(parts.prices @ needed + sum(parts.own[i] for i in some))
    assert covered == pytest.approx(cost([members[i] for i in some]))


def test_one_scan_of_a_basic_interval_synopsis_serves_all_windows() -> None:
    windows = [SubGroup(1, (length,)) for length in range(1, 101)]
    assert ProbeCost()(windows) == ProbeCost()(windows[-1:]) == 99
    assert ProbeCost("interval", intervals=128)(windows) == 100 * 7
    assert ProbeCost("running")(windows) == 100


def test_a_long_window_is_read_longer_but_scanned_once() -> None:
    cost = ProbeCost(combine=1, read=0.5)
    assert cost([SubGroup(1, (10, 10, 100))]) == 99 + 0.5 * 120
    assert cost([SubGroup(1, (10, 10)), SubGroup(2, (100,))]) == 99 + 0.5 * 120


def test_nothing_costs_nothing() -> None:
    assert ProbeCost(start=5)([]) == 0


def test_fitted_numbers_are_never_negative() -> None:
    runs = [[SubGroup(1, (length,) * queries)] for length in (10, 50, 90) for queries in (1, 2, 8)]
    falling = [(run, 1.0 - run[0].windows[0] / 1000 + 0.1 * run[0].queries) for run in runs]
    found = ProbeCost().fitted(falling)
    assert found.combine == 0
    assert found.start > 0
    assert found.post == pytest.approx(0.1)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="'q': period must be a whole number of synopsis updates, at least 1: 0"):
        Task("q", 0)
    with pytest.raises(ValueError, match="'q': period must be a whole number"):
        Task("q", 1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'q': window must be"):
        Task("q", 1, window=0)
    with pytest.raises(ValueError, match="'q': priority must be a whole number: 'a'"):
        Task("q", 1, priority="a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'q': post must be a cost, at least 0: -1"):
        Task("q", 1, post=-1)
    with pytest.raises(ValueError, match="basic_interval, running, interval; found 'landmark'"):
        ProbeCost("landmark")  # type: ignore[arg-type]
