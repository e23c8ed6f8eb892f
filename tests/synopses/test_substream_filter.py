"""Substream filters: the example of 002 Figure 8, Lemma 4.1 as a property, and agreement with plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.substream import NEVER
from windrow.synopses.extreme_filter import ExtremeFilter
from windrow.synopses.substream_filter import SubstreamFilter

ELEMENTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=150)
"""Keys, and the time since the element before."""


def stream(drawn: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    keys = np.array([key for key, _ in drawn], np.int32)
    return keys, np.cumsum(np.array([gap for _, gap in drawn], np.int64))


def counts(keys: np.ndarray, ticks: np.ndarray, start: int, weights: np.ndarray | None = None) -> np.ndarray:
    inside = ticks > start
    return np.bincount(keys[inside], None if weights is None else weights[inside], minlength=21).astype(np.int64)


def test_example_4_1() -> None:
    """Three substreams at time 106: the 11th tuples from the end have the timestamps 90, 85 and 68."""
    ticks = {
        0: [80, 88, 90, 91, 92, 93, 94, 95, 97, 99, 101, 103, 105],
        1: [85, 86, 87, 88, 89, 90, 92, 95, 98, 101, 104],
        2: [60, 62, 65, 68, 70, 72, 75, 85, 86, 88, 90, 94, 97, 100],
    }
    filtered = SubstreamFilter(p=1, most=50)
    for key, times in ticks.items():
        assert times[-11] == (90, 85, 68)[key]
        filtered.update([key] * len(times), times)
    # Of the positions 4 … 7 from the end the one that is a multiple of 4 is kept in level 2.
    assert filtered.timestamps[2].tolist() == [ticks[0][8 - 1], ticks[1][8 - 1], 85]
    found = filtered.lookup(now=106, length=20, threshold=11)
    assert found.keys.tolist() == [0, 1]
    exact = [key for key in found.keys.tolist() if sum(tick > 106 - 20 for tick in ticks[key]) > 11]
    assert exact == [0]


@pytest.mark.parametrize("p", range(1, 17))
@given(drawn=ELEMENTS)
def test_lemma_4_1(p: int, drawn: list[tuple[int, int]]) -> None:
    keys, ticks = stream(drawn)
    filtered = SubstreamFilter(p, most=200)
    filtered.update(keys, ticks)
    now = int(ticks[-1]) if len(ticks) else 0
    starts = np.array([now - length for length in (1, 2, 5, 20, 60, 500)])
    for v in (0, 1, 2, 3, 5, 7, 8, 13, 31, 64, 150, 200):
        above = filtered.above(starts, np.full(len(starts), v))
        below = filtered.below(starts, np.full(len(starts), v))
        for i, start in enumerate(starts):
            true = counts(keys, ticks, start)
            check(above.keys, above.sure, above.offsets, i, np.flatnonzero(true > v))
            candidates = above.keys[above.offsets[i] : above.offsets[i + 1]]
            assert (true[candidates] > v * (1 - filtered.error())).all()
            check(below.keys, below.sure, below.offsets, i, np.flatnonzero((true > 0) & (true < v)))
            candidates = below.keys[below.offsets[i] : below.offsets[i + 1]]
            assert (true[candidates] > 0).all()
            assert (true[candidates] < max(v, 1) * (1 + filtered.error(below=True))).all()


def check(keys: np.ndarray, sure: np.ndarray, offsets: np.ndarray, i: int, exact: np.ndarray) -> None:
    """A superset, ascending, and what is sure is true."""
    found = keys[offsets[i] : offsets[i + 1]]
    assert (np.diff(found) > 0).all()
    assert set(exact) <= set(found)
    assert set(found[sure[offsets[i] : offsets[i + 1]]]) <= set(exact)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
@given(drawn=ELEMENTS)
def test_each_level_holds_the_element_that_the_paper_says(p: int, drawn: list[tuple[int, int]]) -> None:
    keys, ticks = stream(drawn)
    filtered = SubstreamFilter(p, most=40)
    for i in range(len(keys)):
        filtered.update(keys[i : i + 1], ticks[i : i + 1])
        own = ticks[: i + 1][keys[: i + 1] == keys[i]]
        m = len(own)
        for level, (near, far) in enumerate(zip(filtered.nearest_of, filtered.farthest_of, strict=True)):
            places = [at for at in range(m - far + 1, m - near + 2) if at > 0 and at % (far - near + 1) == 0]
            expected = own[places[0] - 1] if places else NEVER
            assert filtered.timestamps[level, keys[i]] == expected


@pytest.mark.parametrize("p", [1, 2, 3, 7, 16])
@given(drawn=ELEMENTS, values=st.lists(st.sampled_from([0, 1, 2, 3, 9, 40, 1000]), min_size=150, max_size=150))
def test_sums_are_counts_of_the_expanded_stream(p: int, drawn: list[tuple[int, int]], values: list[int]) -> None:
    keys, ticks = stream(drawn)
    weights = np.array(values[: len(keys)], np.int64)
    sums, expanded = SubstreamFilter(p, most=3000), SubstreamFilter(p, most=3000)
    sums.update(keys, ticks, weights)
    expanded.update(np.repeat(keys, weights), np.repeat(ticks, weights))
    known = min(sums.keys, expanded.keys)
    assert (sums.timestamps[:, :known] == expanded.timestamps[:, :known]).all()
    assert (sums.timestamps[:, known:] == NEVER).all()


@given(drawn=ELEMENTS, big=st.sampled_from([2**40, 2**61, 2**62]))
def test_huge_values_neither_overflow_nor_lose_a_key(drawn: list[tuple[int, int]], big: int) -> None:
    keys, ticks = stream(drawn)
    weights = np.where(np.arange(len(keys)) % 3 == 0, big, 1)
    filtered = SubstreamFilter(2, most=10**9)
    filtered.update(keys, ticks, weights)
    now = int(ticks[-1]) if len(ticks) else 0
    for start in (now - 1, now - 10, now - 100):
        true = np.bincount(keys[ticks > start], (weights[ticks > start]).astype(float), minlength=21)
        for v in (5, 10**6, 10**9):
            assert set(np.flatnonzero(true > v)) <= set(filtered.above([start], [v]).keys)


@given(drawn=ELEMENTS, values=st.lists(st.integers(-5, 5), min_size=150, max_size=150), least=st.booleans())
def test_extremes_are_exact(drawn: list[tuple[int, int]], values: list[int], least: bool) -> None:
    keys, ticks = stream(drawn)
    given_values = np.array(values[: len(keys)], np.int64)
    thresholds = [-4, -1, 0, 3, 5]
    filtered = ExtremeFilter(thresholds, least)
    filtered.update(keys, ticks, given_values)
    now = int(ticks[-1]) if len(ticks) else 0
    for start in (now - 1, now - 7, now - 40, now - 1000):
        own = [given_values[(keys == key) & (ticks > start)] for key in range(21)]
        best = {key: int(one.min() if least else one.max()) for key, one in enumerate(own) if len(one)}
        for v in thresholds:
            beyond, within = filtered.beyond([start], [v]), filtered.within([start], [v])
            over = [key for key, one in best.items() if (one < v if least else one > v)]
            under = [key for key, one in best.items() if (one > v if least else one < v)]
            assert beyond.keys.tolist() == over and beyond.sure.all()
            assert within.keys.tolist() == under and within.sure.all()


@pytest.mark.parametrize("least", [False, True])
def test_extremes_of_the_extreme_integers(least: bool) -> None:
    smallest, greatest = -(1 << 63), (1 << 63) - 1
    values = np.array([smallest, smallest + 1, -1, 0, 1, greatest - 1, greatest])
    thresholds = [smallest + 1, 0, greatest - 1]
    filtered = ExtremeFilter(thresholds, least)
    filtered.update(np.arange(len(values)), np.ones(len(values)), values)
    for v in thresholds:
        more, less = np.flatnonzero(values > v).tolist(), np.flatnonzero(values < v).tolist()
        assert filtered.beyond([0], [v]).keys.tolist() == (less if least else more)
        assert filtered.within([0], [v]).keys.tolist() == (more if least else less)


@pytest.mark.parametrize("keys", [1, 8, 9, 64, 65, 513, 5000])
def test_the_search_tree_finds_what_a_scan_finds(keys: int) -> None:
    rng = np.random.default_rng(keys)
    filtered = SubstreamFilter(2, most=20)
    n = 4 * keys + 50
    filtered.update(rng.integers(0, keys, n), np.sort(rng.integers(0, 1000, n)))
    for start in (-1, 500, 900, 990, 999):
        for v in (0, 1, 3, 10):
            level = int(np.searchsorted(filtered.farthest_of, v + 1, side="right")) - 1
            expected = np.flatnonzero(filtered.timestamps[level] > start)
            assert filtered.above([start], [v]).keys.tolist() == expected.tolist()
            level = int(np.searchsorted(filtered.nearest_of, max(v, 1)))
            inside = (filtered.timestamps[0] > start) & (filtered.timestamps[level] <= start)
            assert filtered.below([start], [v]).keys.tolist() == np.flatnonzero(inside).tolist()


def test_keys_are_selected_and_added() -> None:
    rng = np.random.default_rng(1)
    keys, ticks = rng.integers(0, 300, 3000), np.arange(3000)
    filtered, fresh = SubstreamFilter(3, most=30), SubstreamFilter(3, most=30)
    chosen = rng.permutation(300)[:70]
    filtered.update(keys[:2000], ticks[:2000])
    filtered.select(chosen)
    place = np.full(300, -1)
    place[chosen] = np.arange(70)
    early, late = place[keys[:2000]], place[keys[2000:]]
    fresh.update(early[early >= 0], ticks[:2000][early >= 0])
    late_ticks, late = ticks[2000:][late >= 0], late[late >= 0]
    more = np.arange(70, 600)
    for one in (filtered, fresh):
        one.update(late, late_ticks)
        one.update(more, np.full(len(more), 3000))
    assert filtered.keys == fresh.keys == 600
    assert (filtered.timestamps == fresh.timestamps).all()
    for v in (0, 2, 9):
        for found in ("above", "below"):
            ours, theirs = getattr(filtered, found)([2500], [v]), getattr(fresh, found)([2500], [v])
            assert ours.keys.tolist() == theirs.keys.tolist()


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one level"):
        SubstreamFilter(p=0)
    filtered = SubstreamFilter(p=1, most=10)
    with pytest.raises(ValueError, match=r"0 … 10, found \[11\]"):
        filtered.above([0], [11])
    filtered.update([4], [100])
    with pytest.raises(ValueError, match="key 4 at 99 came after 100"):
        filtered.update([4], [99])
    with pytest.raises(ValueError, match="not built with"):
        ExtremeFilter([1, 5]).beyond([0], [3])
