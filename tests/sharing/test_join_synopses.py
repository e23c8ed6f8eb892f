"""Synopses over join results: Figures 8.3 and 8.4 of the thesis, and every lookup against the join itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.joined.choice import Load, Looked, choose, windows_of
from windrow.kernels.combine import ADD, MAX
from windrow.kernels.jit import Ints
from windrow.synopses.join_intervals import (
    SYNOPSES,
    BasicIntervalJoin,
    Cells,
    IntervalJoin,
    JoinSynopsis,
    RunningJoin,
    Words,
    Work,
)  # fmt: skip
from windrow.synopses.pane_line import PaneLine
from windrow.windows.grid import Grid

LEAST = np.iinfo(np.int64).min
SUMS = Words(np.array([ADD, ADD]), np.array([0, 0]))
EXTREMES = Words(np.array([ADD, MAX]), np.array([0, LEAST]))
NONE = np.empty(0, np.int64)


class Joined:
    """One axis: results with both timestamps come, and at each s ticks windows of n·s are asked."""

    def __init__(
        self,
        kind: type[JoinSynopsis],
        s: int,
        b: int,
        extra: tuple[int, int] = (0, 0),
        words: Words = SUMS,
        groups: int = 1,
    ) -> None:
        self.s, self.b, self.extra, self.groups, self.time = s, b, extra, groups, 0
        self.line = PaneLine(Grid(((s, 0),)))
        self.synopsis = kind(words, Cells.none(words), groups, b + 2)
        self.line.extend(-b * s, 0)

    def update(
        self, left: Ints, right: Ints, *windows: int, values: Ints | None = None, gids: Ints | None = None
    ) -> list[Ints]:
        """Move on by s with what has come since; for each window the second words, by group."""
        self.time += self.s
        self.line.extend(0, self.time)
        expiry = np.minimum(left + self.extra[0], right + self.extra[1])
        seen = expiry > self.time - self.b * self.s
        words = np.stack([np.ones(len(left), np.int64), np.ones(len(left), np.int64) if values is None else values], 1)
        gids = np.zeros(len(left), np.int64) if gids is None else gids
        lengths = np.sort(np.array([*windows, self.b]))[::-1]
        borders = self.line.border(self.time - self.s * lengths)
        wanted = np.array(sorted({int(np.flatnonzero(lengths == n)[0]) for n in windows}, reverse=True), np.int64)
        bounds = np.array([0, len(wanted)])
        new = (self.line.number(expiry)[seen], gids[seen], words[seen], np.array([seen.sum()]))
        work = Work(*new, borders[None], bounds, wanted)
        found = {}
        for part in self.synopsis.run(work, self.groups):
            for i, place in enumerate(wanted):
                answer = np.full(self.groups, self.synopsis.words.identity[1])
                rows = slice(part.offsets[i], part.offsets[i + 1])
                answer[part.gids[rows]] = part.words[1, rows]
                found[int(lengths[place])] = answer
        self.line.drop(self.time - self.b * self.s)
        return [found[n] for n in windows]

    def counts(self, left: Ints, right: Ints, *windows: int) -> list[int]:
        """The same where words count."""
        return [int(one[0]) for one in self.update(left, right, *windows)]


OLD = np.arange(-69, 2, 10)
"""Tuples in each of eight slots, the last of which is (0, 10]."""


@pytest.mark.parametrize("kind", SYNOPSES.values())
def test_figure_8_3_the_intervals_move_with_an_update(kind: type[JoinSynopsis]) -> None:
    """At an update the first is dropped and one is appended; a result of tuples of all ages is in every one of them."""
    joined = Joined(kind, s=10, b=8)
    before = [*joined.line.edges]
    assert joined.counts(OLD, np.full(8, 10), *range(1, 9)) == list(range(1, 9))
    # They are named by the older tuple: what is there up to t expires, with windows of 80, at t + 80.
    assert [*joined.line.edges] == [*before[1:], 10]
    assert joined.counts(NONE, NONE, *range(1, 9)) == list(range(8))  # the oldest has gone


def test_figure_8_3_rj_is_for_what_can_be_subtracted() -> None:
    rj = Joined(RunningJoin, s=10, b=8)
    assert rj.counts(OLD, np.full(8, 10), 3, 6) == [3, 6]
    assert rj.synopsis.read == 2  # one sum for each of them
    with pytest.raises(ValueError, match="no MIN or MAX"):
        Joined(RunningJoin, s=10, b=8, words=EXTREMES)


@pytest.mark.parametrize("kind", SYNOPSES.values())
def test_figure_8_4_a_join_of_different_windows_is_between_those_of_equal_ones(kind: type[JoinSynopsis]) -> None:
    """A (7s, 8s)-join has more than a (7s, 7s)-join and less than an (8s, 8s)-join."""
    # A first tuple that is old, a second one that is, and a result of two young ones.
    left, right = np.array([-69, 10, 1]), np.array([10, -69, 10])
    count = {}
    for pair in [(7, 7), (7, 8), (8, 7), (8, 8), (6, 8), (6, 6)]:
        n = min(pair)
        joined = Joined(kind, 10, n, (10 * (pair[0] - n), 10 * (pair[1] - n)))
        (count[pair],) = joined.counts(left, right, n)
    assert count == {(7, 7): 1, (7, 8): 2, (8, 7): 2, (8, 8): 3, (6, 8): 2, (6, 6): 1}


def results(rng: np.random.Generator, time: int, s: int, b: int, many: int = 6) -> tuple[Any, Any, Any]:
    """Results that come in slot `time`: one tuple is new, the other somewhere in its window."""
    count = int(rng.integers(0, many))
    new = rng.integers((time - 1) * s + 1, time * s + 1, count)
    old = rng.integers((time - b) * s + 1, time * s + 1, count)
    swap = rng.random(count) < 0.5
    return np.where(swap, new, old), np.where(swap, old, new), rng.integers(-50, 50, count)


@given(
    st.sampled_from([*SYNOPSES.values()]),
    st.booleans(),
    st.integers(1, 4),
    st.integers(1, 9),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(0, 2**32),
)
def test_every_window_against_the_join(
    kind: type[JoinSynopsis], sums: bool, s: int, b: int, extra: tuple[int, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    groups, more = 3, (s * (extra[0] - min(extra)), s * (extra[1] - min(extra)))
    joined = Joined(kind, s, b, more, SUMS if sums or kind is RunningJoin else EXTREMES, groups)
    sums = joined.synopsis.words is SUMS
    left, right, values, gids = NONE, NONE, NONE, NONE
    windows = sorted({int(n) for n in rng.integers(1, b + 1, 3)})
    for time in range(1, 25):
        new_left, new_right, new_values = results(rng, time, s, b + max(more) // s)
        new_gids = rng.integers(0, groups, len(new_left))
        left, right = np.concatenate([left, new_left]), np.concatenate([right, new_right])
        values, gids = np.concatenate([values, new_values]), np.concatenate([gids, new_gids])
        asked = windows if rng.random() < 0.7 else []
        found = joined.update(new_left, new_right, *asked, values=new_values, gids=new_gids)
        for n, answer in zip(asked, found, strict=True):
            there = (left + n * s + more[0] > time * s) & (right + n * s + more[1] > time * s)
            for group in range(groups):
                chosen = values[there & (gids == group)]
                assert answer[group] == (chosen.sum() if sums else max(chosen, default=LEAST))
        if rng.random() < 0.2:  # made anew, perhaps as another one, from what it has
            other = kind if rng.random() < 0.5 or not sums else list(SYNOPSES.values())[int(rng.integers(3))]
            joined.synopsis = other(joined.synopsis.words, joined.synopsis.cells(), groups, b + 2, joined.line.first)


def filled(kind: type[JoinSynopsis], *windows: int, b: int = 64) -> JoinSynopsis:
    """After one lookup of these windows; only that one is counted."""
    rng = np.random.default_rng(3)
    joined = Joined(kind, 10, b)
    for time in range(1, 2 * b):
        left, right, values = results(rng, time, 10, b, 40)
        joined.update(left, right, values=values)
    joined.update(NONE, NONE)
    joined.synopsis._told[:] = 0
    joined.update(NONE, NONE, *windows)
    return joined.synopsis


def test_cs4_a_window_is_read_in_few_intervals() -> None:
    """At most 2 log b of IJ for each length, and of RJ one sum; of the scan of BIJ as many as there are panes."""
    for n in (63, 50, 31):
        assert filled(IntervalJoin, n).read <= 2 * 6
        assert filled(RunningJoin, n).read == 1 + (n == 64)
        assert filled(BasicIntervalJoin, n).read > 0.8 * n
    # Another length shares nothing with it.
    assert filled(IntervalJoin, 63, 50).read == filled(IntervalJoin, 63).read + filled(IntervalJoin, 50).read


def test_cs5_all_windows_in_one_scan() -> None:
    windows = range(4, 64, 4)
    assert filled(BasicIntervalJoin, *windows).read == filled(BasicIntervalJoin, 60).read
    assert filled(IntervalJoin, *windows).read > 64


def test_updates_cost_what_the_table_says() -> None:
    left, right = np.array([1, 2, 3]), np.array([4, 5, 6])
    for kind, each, passed in ((BasicIntervalJoin, 1, 0), (RunningJoin, 2, 2), (IntervalJoin, 5, 0)):
        joined = Joined(kind, 10, 14)
        joined.update(left, right)
        joined.synopsis.cells()
        assert joined.synopsis.updated == each * 3 + passed  # 16 panes have five levels, and one pane has passed


def test_many_windows_or_few_panes_are_scanned_and_few_long_ones_are_probed() -> None:
    def chosen(panes: list[int], *, sums: bool, groups: int = 1, results: float = 100.0) -> str:
        return choose(Load(tuple(Looked(n, 1.0) for n in panes), sums, groups, results))

    assert chosen([10, 11], sums=False) == "bij"
    assert chosen([5000, 10000], sums=False, results=10) == "ij"
    assert chosen(list(range(100, 400)), sums=False) == "bij"
    assert chosen([50, 100], sums=True) == "rj"
    assert chosen(list(range(10, 100)), sums=True) == "bij"
    assert chosen(list(range(10, 100)), sums=False, groups=50) == "bij"
    assert chosen([5000, 10000], sums=False, groups=10**6, results=10) == "bij"  # too many cells to keep all
    # A window that is seldom due is scanned seldom.
    often, seldom = Looked(10.0, 1.0), Looked(10000.0, 0.0001)
    assert choose(Load((often, seldom), subtractable=False)) == "bij"
    assert choose(Load((often, Looked(10000.0, 1.0)), subtractable=False)) == "ij"
    # What is there stays unless another is much better.
    near = Load((Looked(20.0, 1.0), Looked(15.0, 1.0)), subtractable=True, groups=1, results=40)
    assert choose(near) != choose(near, "bij") == "bij"
    assert windows_of([(100, 10), (100, 20), (50, 10)], 0.1) == (Looked(10.0, 1.0), Looked(5.0, 1.0))
