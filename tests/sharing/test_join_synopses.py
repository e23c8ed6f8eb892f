"""Synopses over join results: Figures 8.3 and 8.4 of the thesis, and every lookup against the join itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.aggregates.count import CountRows
from windrow.aggregates.extremes import Max
from windrow.aggregates.sums import SumInts
from windrow.synopses.join_intervals import BasicIntervalJoin, IntervalJoin, JoinSynopsis, RunningJoin

KINDS: list[type[JoinSynopsis]] = [BasicIntervalJoin, IntervalJoin, RunningJoin]
NONE = np.empty(0, np.int64)


def results(rng: np.random.Generator, time: int, s: int, b: int, many: int = 6) -> tuple[Any, Any, Any]:
    """Results that come in slot `time`: one tuple is new, the other somewhere in its window."""
    count = int(rng.integers(0, many))
    new = rng.integers((time - 1) * s + 1, time * s + 1, count)
    old = rng.integers((time - b) * s + 1, time * s + 1, count)
    swap = rng.random(count) < 0.5
    return np.where(swap, new, old), np.where(swap, old, new), rng.integers(-50, 50, count)


def test_figure_8_3_the_intervals_of_bij_move_with_an_update() -> None:
    """At t they end at t+s … t+8s; at t+s the first is dropped and one that ends at t+9s is appended."""
    bij = BasicIntervalJoin(CountRows(), s=10, b=8)
    before = bij.intervals
    assert before == [(10 * k, 10 * (k + 1)) for k in range(8)]
    # Results of tuples in slot 1 with tuples of each slot since: they expire in each of the intervals.
    old = np.arange(-69, 2, 10)
    bij.update(old, np.full(8, 10))
    assert bij.intervals == [*before[1:], (80, 90)]
    assert [int(bij.lookup(n, n)[0, 0]) for n in range(1, 9)] == list(range(1, 9))
    bij.update(NONE, NONE)  # the next update drops those that expire in (10, 20]
    assert [int(bij.lookup(n, n)[0, 0]) for n in range(1, 9)] == list(range(8))
    assert bij.updated == 2 * 8  # every interval, at each update


def test_figure_8_3_rj_keeps_sums_up_to_each_border() -> None:
    rj = RunningJoin(CountRows(), s=10, b=8)
    rj.update(np.arange(-69, 2, 10), np.full(8, 10))
    before = rj.accessed
    assert [int(rj.lookup(n, n)[0, 0]) for n in range(1, 9)] == list(range(1, 9))
    assert rj.accessed - before == 2 * 8  # two reads each
    with pytest.raises(ValueError, match="max cannot be subtracted"):
        RunningJoin(Max(), s=10, b=8)


def test_figure_8_4_a_join_of_different_windows_is_between_those_of_equal_ones() -> None:
    """b = 8, g = 2: a (7s, 8s)-join has more than a (7s, 7s)-join and less than an (8s, 8s)-join."""
    bij = BasicIntervalJoin(CountRows(), s=10, b=8, g=2)
    # A first tuple that is old, a second one that is, and a result of two young ones.
    bij.update(np.array([-69, 10, 1]), np.array([10, -69, 10]))
    count = {pair: int(bij.lookup(*pair)[0, 0]) for pair in [(7, 7), (7, 8), (8, 7), (8, 8), (6, 8), (6, 6)]}
    assert count == {(7, 7): 1, (7, 8): 2, (8, 7): 2, (8, 8): 3, (6, 8): 2, (6, 6): 1}
    with pytest.raises(ValueError, match=r"a \(5s, 8s\)-join is not in a synopsis with b = 8 and g = 2"):
        bij.lookup(5, 8)
    with pytest.raises(ValueError, match="both between 8s and 8s"):
        BasicIntervalJoin(CountRows(), s=10, b=8).lookup(7, 8)


@given(
    st.sampled_from(KINDS),
    st.sampled_from([CountRows(), SumInts(), Max()]),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 8),
    st.integers(0, 2**32),
)
def test_every_window_against_the_join(
    kind: type[JoinSynopsis], component: Any, s: int, b: int, g: int, seed: int
) -> None:
    g = min(g, b - 1)
    if kind is RunningJoin and isinstance(component, Max):
        return
    rng = np.random.default_rng(seed)
    groups = 3
    synopsis = kind(component, s, b, g, groups)
    left, right, values, gids = NONE, NONE, NONE, NONE
    for time in range(1, 25):
        new_left, new_right, new_values = results(rng, time, s, b)
        new_gids = rng.integers(0, groups, len(new_left))
        synopsis.update(new_left, new_right, new_gids, None if isinstance(component, CountRows) else new_values)
        left, right = np.concatenate([left, new_left]), np.concatenate([right, new_right])
        values, gids = np.concatenate([values, new_values]), np.concatenate([gids, new_gids])
        for n1 in range(1, b + 1):
            for n2 in range(1, b + 1):
                if n1 != n2 and min(n1, n2) < b - g:
                    continue
                there = (left + n1 * s > time * s) & (right + n2 * s > time * s)
                found = synopsis.lookup(n1, n2)[0]
                for group in range(groups):
                    chosen = values[there & (gids == group)]
                    match component:
                        case CountRows():
                            assert found[group] == len(chosen)
                        case SumInts():
                            assert found[group] == chosen.sum()
                        case _:
                            assert found[group] == max(chosen, default=np.iinfo(np.int64).min)


def filled(kind: type[JoinSynopsis], g: int) -> JoinSynopsis:
    rng = np.random.default_rng(3)
    synopsis = kind(SumInts(), 10, 32, g)
    for time in range(1, 50):
        left, right, values = results(rng, time, 10, 32, 40)
        synopsis.update(left, right, None, values)
    return synopsis


def test_ss3_one_synopsis_for_many_windows() -> None:
    """Each window for itself would keep its own intervals; for windows of two lengths, nothing shorter than b-g."""
    shared = filled(BasicIntervalJoin, g=2)
    windows = [(n, n) for n in range(1, 33)] + [(30, 32), (32, 31), (31, 30)]
    alone = sum(filled(BasicIntervalJoin, g=0).kept * max(pair) // 32 for pair in windows)
    assert shared.kept == 32 * 5
    assert shared.kept < alone / 3
    for pair in windows:
        shared.lookup(*pair)


def test_cs4_the_same_windows_are_read_once() -> None:
    """Two intervals of RJ, and at most 2 log b of IJ, however many queries take the answer."""
    for kind, most in ((RunningJoin, 2), (IntervalJoin, 2 * 5 + 1)):
        synopsis = filled(kind, g=0)
        synopsis.accessed = 0
        synopsis.lookup(31, 31)
        assert synopsis.accessed <= most
        synopsis.lookup(30, 30)  # another length shares nothing with it
        assert synopsis.accessed > most / 2


def test_cs5_all_windows_in_one_scan() -> None:
    windows = [(n, n) for n in range(4, 33, 4)] + [(30, 32), (32, 31)]
    one_by_one, together = filled(BasicIntervalJoin, g=2), filled(BasicIntervalJoin, g=2)
    assert isinstance(together, BasicIntervalJoin)
    one_by_one.accessed = together.accessed = 0
    separate = [one_by_one.lookup(*pair) for pair in windows]
    at_once = together.lookup_all(windows)
    assert all(np.array_equal(one, other) for one, other in zip(separate, at_once, strict=True))
    assert one_by_one.accessed == sum(min(pair) for pair in windows) + 3
    assert together.accessed == 32 + 3  # the intervals of one scan, and what is between 30 or 31 and 32
    with pytest.raises(ValueError, match="is not in a synopsis"):
        together.lookup_all([(3, 3), (20, 30)])


def covered(kind: type[JoinSynopsis]) -> tuple[JoinSynopsis, JoinSynopsis, JoinSynopsis]:
    """The synopses of two disjoint predicates, and that of a query which has the rows of both."""
    rng = np.random.default_rng(5)
    tcp, udp, both = (kind(SumInts(), 10, 8) for _ in range(3))
    for time in range(1, 20):
        left, right, values = results(rng, time, 10, 8, 40)
        is_tcp = rng.random(len(left)) < 0.5
        for synopsis, rows in ((tcp, is_tcp), (udp, ~is_tcp), (both, is_tcp | ~is_tcp)):
            synopsis.update(left[rows], right[rows], None, values[rows])
        for synopsis in (tcp, udp, both):
            synopsis.accessed = 0
    return tcp, udp, both


def test_cs6_the_answers_for_the_same_window_are_combined() -> None:
    tcp, udp, both = covered(RunningJoin)
    answers = [tcp.lookup(6, 6), udp.lookup(6, 6)]
    read = tcp.accessed + udp.accessed
    assert np.array_equal(answers[0] + answers[1], both.lookup(6, 6))  # without another read of theirs
    assert tcp.accessed + udp.accessed == read == 4
    assert not np.array_equal(answers[0] + answers[1], both.lookup(5, 5))  # of no use for another window


def test_cs7_the_answers_for_any_window_are_found_on_the_way() -> None:
    tcp, udp, both = covered(BasicIntervalJoin)
    assert isinstance(tcp, BasicIntervalJoin) and isinstance(udp, BasicIntervalJoin)
    (_, of_tcp), (_, of_udp) = tcp.lookup_all([(8, 8), (5, 5)]), udp.lookup_all([(8, 8), (5, 5)])
    assert np.array_equal(of_tcp + of_udp, both.lookup(5, 5))
    assert tcp.accessed + udp.accessed == 2 * 8  # not 2 * (8 + 5)


def test_results_that_cannot_be_are_refused() -> None:
    bij = BasicIntervalJoin(CountRows(), s=10, b=2)
    with pytest.raises(ValueError, match="younger tuple is in slot 1"):
        bij.update(np.array([11]), np.array([12]))
    with pytest.raises(ValueError, match="0 <= g < b"):
        BasicIntervalJoin(CountRows(), s=10, b=2, g=2)
