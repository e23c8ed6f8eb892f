"""The bounds of the rank and counter sketches over many seeds and kinds of data, also when open panes are cut down."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from windrow.aggregates.sketched import sketched
from windrow.synopses import open_entries
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.collections import collection
from windrow.synopses.entries import Entries
from windrow.synopses.frequent import Frequent
from windrow.synopses.thinning import halve_ranks, thin_counts, thin_ranks

SEEDS = range(max(8, int(os.environ.get("WINDROW_EXAMPLES", "0")) // 10))
DATA = {
    "uniform": lambda rng, n: rng.random(n),
    "ascending": lambda rng, n: np.arange(n, dtype=np.float64),
    "descending": lambda rng, n: -np.arange(n, dtype=np.float64),
    "skewed": lambda rng, n: np.floor(rng.pareto(0.8, n) * 10),
    "normal": lambda rng, n: rng.normal(size=n),
    "few": lambda rng, n: rng.integers(0, 5, n).astype(np.float64),
}


def fill(kept: Collection, values: np.ndarray, panes: int, batches: int, rng: np.random.Generator) -> Windows:
    """Put values into panes of one group, in batches; gives the window over all."""
    slots = rng.integers(0, panes, len(values)).astype(np.int32)
    for part in np.array_split(np.arange(len(values)), batches):
        kept.insert(slots[part], np.zeros(len(part), np.int32), pa.array(values[part]))
    kept.close(np.arange(panes), np.empty(0, np.int64))
    return Windows(
        np.array([0]), np.array([panes]), np.array([0, 1]), np.zeros(1, np.int32), 1, np.arange(1, panes + 1)
    )


def rank_error(values: np.ndarray, found: float, phi: float) -> float:
    """How far the rank of the answer is from φ N, as a share of N: zero if φ N is among the ranks of equal values."""
    ordered = np.sort(values)
    low, high = np.searchsorted(ordered, found, "left"), np.searchsorted(ordered, found, "right")
    assert low < high, "an answer is one of the values"
    wanted = max(1, np.floor(phi * len(values)))
    return float(max(0, low + 1 - wanted, wanted - high)) / len(values)


@pytest.mark.parametrize("many_entries", [1 << 20, 20_000], ids=["whole panes", "cut open"])
@pytest.mark.parametrize("name", DATA)
def test_rank_error(name: str, many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = DATA[name](rng, int(rng.choice([100, 5000, 60_000])))
        panes = int(rng.choice([1, 7, 40]))
        for phi in (0.0, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0):
            component = sketched("APPROX_QUANTILE", pa.float64(), (phi,))
            kept = collection(component.store)
            windows = fill(kept, values, panes, 5, rng)
            found = kept.lookup(windows, component.question)[0].as_py()
            assert rank_error(values, found, phi) <= 0.005
            if phi == 0.0 and many_entries > len(values):
                assert found == values.min()


def test_a_pane_that_is_cut_down_hundreds_of_times() -> None:
    rng = np.random.default_rng(3)
    values = rng.permutation(1_000_000)
    entries = Entries.none()
    for part in np.array_split(values, 100):
        zeros = np.zeros(len(part), np.int64)
        entries = Entries.joined([entries, Entries(zeros, zeros, part, np.ones(len(part), np.int64))]).counted()
        entries = halve_ranks(entries, 8192)
        assert len(entries) <= 2 * 8192
    assert entries.counts.sum() == len(values)
    worst = np.abs(np.cumsum(entries.counts) - entries.codes).max() / len(values)
    assert worst <= 0.004


def test_thinning_keeps_every_row_in_the_ranks() -> None:
    rng = np.random.default_rng(9)
    rows = 50_000
    entries = Entries(
        rng.integers(0, 3, rows), rng.integers(0, 4, rows), rng.integers(0, 9000, rows), rng.integers(1, 9, rows)
    ).counted()
    thin = thin_ranks(entries, 64)
    for pane in range(3):
        for group in range(4):
            ours, theirs = (one[(one.panes == pane) & (one.groups == group)] for one in (thin, entries))
            assert len(ours) <= 64
            total = theirs.counts.sum()
            assert ours.counts.sum() == total
            at = np.searchsorted(theirs.codes, ours.codes, "right") - 1
            assert (
                np.abs(np.cumsum(ours.counts) - np.cumsum(theirs.counts)[at]).max() <= total / 64 + theirs.counts.max()
            )


@pytest.mark.parametrize("many_entries", [1 << 20, 2_000], ids=["whole panes", "cut open"])
def test_frequent_items(many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """lower ≤ true ≤ lower + N / counters; whoever is above that is there."""
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = np.minimum(rng.zipf(1.2, 40_000), 10**12)
        k = int(rng.choice([1, 5, 100]))
        component = sketched("APPROX_TOP_K", pa.int64(), (k,))
        kept = collection(component.store)
        windows = fill(kept, values, int(rng.choice([1, 6])), 4, rng)
        found = {one["value"]: one["count"] for one in kept.lookup(windows, component.question)[0].as_py()}
        true = Counter(values.tolist())
        error = len(values) / 1024
        for value, count in found.items():
            assert count <= true[value] <= count + error
        kth = sorted(true.values(), reverse=True)[k - 1]
        assert {value for value, count in true.items() if count > kth + error} <= set(found)


def test_counters_are_those_of_misra_and_gries() -> None:
    rng = np.random.default_rng(4)
    values, counts = np.unique(rng.zipf(1.3, 20_000), return_counts=True)
    zeros = np.zeros(len(values), np.int64)
    left, lost = thin_counts(Entries(zeros, zeros, values, counts), 50)
    assert len(left) <= 50
    true = dict(zip(values.tolist(), counts.tolist(), strict=True))
    (most_lost,) = lost.counts
    assert most_lost <= counts.sum() / 51
    kept = dict(zip(left.codes.tolist(), left.counts.tolist(), strict=True))
    assert all(true[value] == kept.get(value, 0) + most_lost or value not in kept for value in true)
    assert max(count for value, count in true.items() if value not in kept) <= most_lost


@pytest.mark.parametrize("many_entries", [1 << 20, 2_000], ids=["whole panes", "cut open"])
@pytest.mark.parametrize("name", ["FREQUENT", "APPROX_FREQUENT"])
def test_frequent_has_no_false_positives(name: str, many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """δ is at least what a value on no list can occur, and no count is above the true one (thesis 6.2)."""
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    reported = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = np.minimum(rng.zipf(1.5, 30_000), 10**12)
        k = int(rng.choice([2, 10, 50]))
        component = sketched(name, pa.int64(), (k, 3, 0))
        kept = collection(component.store)
        assert isinstance(kept, Frequent)
        windows = fill(kept, values, 12, 4, rng)  # four sub-windows of three panes
        found = {one["value"]: one["count"] for one in kept.lookup(windows, component.question)[0].as_py()}
        true = Counter(values.tolist())
        delta = int(kept._deltas.counts.sum())
        listed = set(kept._lists.codes.tolist())
        assert len(kept._lists) <= 4 * k
        assert max(count for value, count in true.items() if value not in listed) <= delta
        assert all(delta < count <= true[value] for value, count in found.items())
        reported += len(found)
    assert reported > len(SEEDS)
