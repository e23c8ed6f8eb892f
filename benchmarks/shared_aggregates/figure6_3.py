"""Thesis Figure 6.3 (a)-(f): frequent items from top-k lists per sub-window (Algorithm 6), on a skewed, bursty trace.

N = 100,000 tuples, sub-windows of b = 20, 100, 500, k = 1..10, averages over random starting points. The thesis used a
TCP trace with 1,647 source addresses; here a Zipf law draws flows of geometric lengths, six at a time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.measure import Panel, compiled, draw, table, verdict
from windrow.kernels.jit import Ints

ITEMS = 1647
N = 100_000
SIZES = (20, 100, 500)
MOST = 10
PARTS = (
    "(a) threshold δ, % of N",
    "(b) items above δ",
    "(c) items reported",
    "(d) % of them identified",
    "(e) pairs stored",
    "(f) relative error, %",
)


def trace(length: int, seed: int = 6) -> Ints:
    """Flows of a mean of 8 packets from Zipf sources, six of them interleaved at any moment."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, ITEMS + 1) ** 1.2
    lanes = 6
    packets = []
    for _ in range(lanes):
        sources = rng.choice(ITEMS, length // lanes, p=weights / weights.sum())
        packets.append(np.repeat(sources, rng.geometric(1 / 8, len(sources)))[: length // lanes])
    lane = np.argsort(rng.random((length // lanes, lanes)), axis=1)
    return np.take_along_axis(np.stack(packets, axis=1), lane, axis=1).reshape(-1).astype(np.int64)


@compiled
def algorithm6(window: Ints, b: int, most: int, reported: Ints, delta: Ints, stored: Ints) -> None:
    """Lines 2-18 for every k up to `most` at once: reported[k - 1, item], the threshold and the pairs of each k."""
    counts = np.zeros(reported.shape[1], np.int64)
    seen = np.empty(b, np.int64)
    top = np.empty(most, np.int64)
    for begin in range(0, window.size, b):
        distinct = 0
        for i in range(begin, begin + b):
            if counts[window[i]] == 0:
                seen[distinct] = window[i]
                distinct += 1
            counts[window[i]] += 1
        length = 0
        for s in range(distinct):  # insertion into a short list, by count
            item = seen[s]
            place = length
            while place > 0 and counts[top[place - 1]] < counts[item]:
                if place < most:
                    top[place] = top[place - 1]
                place -= 1
            if place < most:
                top[place] = item
                length = min(length + 1, most)
        for k in range(most):
            # With fewer than k items in the sub-window nothing of it is missing.
            if k < length:
                delta[k] += counts[top[k]]
            stored[k] += min(k + 1, length)
            for rank in range(min(k + 1, length)):
                reported[k, top[rank]] += counts[top[rank]]
        for s in range(distinct):
            counts[seen[s]] = 0


def averages(packets: Ints, b: int, starts: Ints) -> dict[str, list[float]]:
    """The six quantities for k = 1..10, averaged over the starting points."""
    sums = np.zeros((len(PARTS), MOST))
    for start in starts:
        window = packets[start : start + N]
        true = np.bincount(window, minlength=ITEMS)
        reported = np.zeros((MOST, ITEMS), np.int64)
        delta, stored = np.zeros(MOST, np.int64), np.zeros(MOST, np.int64)
        algorithm6(window, b, MOST, reported, delta, stored)
        assert (reported <= true).all(), "a reported count is above the true one"
        for k in range(MOST):
            above = true > delta[k]
            named = reported[k] > delta[k]
            assert not (named & ~above).any(), "a false positive"
            errors = (true[named] - reported[k][named]) / true[named]
            share = 100 * named.sum() / above.sum() if above.any() else 100.0
            error = 100 * errors.mean() if named.any() else 0.0
            sums[:, k] += [100 * delta[k] / N, above.sum(), named.sum(), share, stored[k], error]
    return {part: (sums[i] / len(starts)).tolist() for i, part in enumerate(PARTS)}


def run(quick: bool, plots: Path | None) -> dict[int, dict[str, list[float]]]:
    """All six parts for the three sizes of sub-windows."""
    trials = 4 if quick else 100
    packets = trace(400_000 if quick else 2_000_000)
    starts = np.random.default_rng(0).integers(0, len(packets) - N, trials)
    results = {b: averages(packets, b, starts) for b in SIZES}
    for part in PARTS:
        rows = [[f"b = {b}", *results[b][part]] for b in SIZES]
        table(f"Figure 6.3 {part}", ["k", *(str(k) for k in range(1, MOST + 1))], rows)
    shape(results)
    if plots is not None:
        ks = list(range(1, MOST + 1))
        panels = [Panel(part, "k", part[4:], {f"b = {b}": (ks, results[b][part]) for b in SIZES}) for part in PARTS]
        draw(plots / "shared_figure6_3.png", panels, columns=3)
    return results


def shape(results: dict[int, dict[str, list[float]]]) -> dict[str, bool]:
    """What the thesis saw."""
    delta, above, _, share, stored, error = ([results[b][part] for b in SIZES] for part in PARTS)
    return {
        "threshold": verdict(
            "(a) the threshold falls with k, and is higher in smaller sub-windows",
            all((np.diff(one) <= 0).all() for one in delta) and delta[0][4] >= delta[1][4] >= delta[2][4],
        ),
        "above": verdict("(b) more items are above it as k grows", all(one[-1] > one[0] for one in above)),
        "identified": verdict(
            "(d) from k = 3 on at least 80 % of them are identified, on average",
            all(float(np.mean(one[2:])) >= 80 for one in share),
        ),
        "space": verdict(
            "(e) far fewer pairs than tuples for b = 500; the number of sub-windows counts most",
            stored[2][-1] < N / 10 and stored[0][4] > stored[1][4] > stored[2][4],
        ),
        "error": verdict(
            "(f) from k = 7 on the error is smaller in smaller sub-windows",
            all(error[0][k] <= error[1][k] <= error[2][k] for k in range(6, MOST)),
        ),
        "falling": verdict("(f) the error falls from k = 3 to k = 10", all(one[-1] < one[2] for one in error)),
    }
