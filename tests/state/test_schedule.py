"""A schedule gives back everything exactly when it is due, for any times, in lock-step with a sorted list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.state.rows import NEVER
from windrow.state.schedule import BEGINNING, Schedule

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
TIMES = (
    st.integers(-5, 5)
    | st.integers(-1000, 100_000)
    | st.integers(LOWEST, HIGHEST)
    | st.sampled_from([LOWEST, LOWEST + 1, -1, 0, 255, 256, 65535, 65536, HIGHEST - 1, HIGHEST])
)


def plain(entries):
    return sorted(zip(*(array.tolist() for array in entries), strict=True))


@given(
    st.lists(st.tuples(TIMES, st.lists(TIMES | st.integers(0, 300), max_size=90), st.booleans()), max_size=12),
)
def test_in_lock_step_with_a_list(steps):
    schedule, model, now = Schedule(), [], BEGINNING
    number = 0
    for upto, times, again in sorted(steps, key=lambda step: step[0]):
        weights = np.arange(len(times)) % 5 - 2
        numbers = np.arange(number, number + len(times))
        schedule.add(np.array(times, np.int64), numbers, weights.astype(np.int8) if len(times) else 0)
        rows = zip(times, numbers.tolist(), weights.tolist(), strict=True)
        model += [row for row in rows if now < row[0] < NEVER]
        number += len(times)
        assert plain(schedule.entries()) == sorted(model)
        due = plain(schedule.due(upto))
        assert due == sorted(row for row in model if row[0] <= upto)
        now = max(now, upto)
        model = [row for row in model if row[0] > upto]
        assert len(schedule) == len(model)
        if again:
            entries = schedule.entries()
            schedule = Schedule()
            schedule.load(now, *entries)
    assert plain(schedule.due(HIGHEST)) == sorted(model)


def test_each_instant_on_its_own():
    schedule = Schedule()
    random = np.random.default_rng(7)
    wanted = {}
    for now in range(-3000, 3000):
        schedule.due(now)
        times = now + random.integers(1, 2000, 2)
        schedule.add(times, np.full(2, now), 1)
        for time in times.tolist():
            wanted.setdefault(time, []).append(now)
        found = schedule.due(now + 1)
        assert sorted(found[1].tolist()) == wanted.pop(now + 1, [])


def test_one_weight_for_all_and_new_names():
    schedule = Schedule()
    schedule.add(np.array([5, 6, 7]), np.array([0, 1, 2]), -2)
    schedule.rename(np.array([9, -1, 4]))
    assert plain(schedule.entries()) == [(5, 9, -2), (7, 4, -2)]


def test_memory_follows_the_entries():
    schedule = Schedule()
    empty = schedule.nbytes
    schedule.add(np.arange(1, 100_001), np.arange(100_000))
    assert len(schedule) == 100_000
    assert schedule.nbytes <= empty + 2 * 21 * 100_000
    schedule.due(99_990)
    assert len(schedule) == 10
    assert schedule.nbytes == empty
    assert plain(schedule.due(10**6)) == [(time, time - 1, 0) for time in range(99_991, 100_001)]
