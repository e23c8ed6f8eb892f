"""002 Figure 9: 1000 SUM windows over the last 0..999 tuples, inputs from all lookups to all updates.

Five ways, one input at a time, all compiled: R-INT, B-INT, PSoup's red-black tree, all answers kept up to date
(materialize all), and answers computed from the window when asked for (materialize none).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Best, Panel, compiled, draw, table, verdict
from benchmarks.shared_aggregates import psoup
from windrow.kernels.jit import Ints

WINDOWS = 1000
RING = 1024
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""The part of the inputs that are updates."""


@compiled
def running(updates: NDArray[np.bool_], numbers: Ints, ring: Ints, count: int) -> int:
    """R-INT: prefix sums in a ring; a lookup of N tuples is one subtraction."""
    check = 0
    for i in range(numbers.size):
        if updates[i]:
            ring[(count + 1) & (RING - 1)] = ring[count & (RING - 1)] + numbers[i]
            count += 1
        else:
            check += ring[count & (RING - 1)] - ring[(count - numbers[i]) & (RING - 1)]
    return check


@compiled
def interval(updates: NDArray[np.bool_], numbers: Ints, rings: Ints, count: int) -> int:
    """B-INT (Figure 3): sums of aligned blocks of 1, 2, 4, … tuples in rings; O(log N) of them cover a lookup."""
    check = 0
    for i in range(numbers.size):
        if updates[i]:
            total = numbers[i]
            rings[0, count & (RING - 1)] = total
            level = 0
            at = count
            while at & 1 and level < rings.shape[0] - 1:
                total += rings[level, (at - 1) & ((RING >> level) - 1)]
                at >>= 1
                level += 1
                rings[level, at & ((RING >> level) - 1)] = total
            count += 1
        else:
            left = count - numbers[i]
            right = count
            level = 0
            while left < right:  # blocks at the left grow, then blocks at the right shrink
                if left & 1:
                    check += rings[level, left & ((RING >> level) - 1)]
                    left += 1
                if right & 1:
                    right -= 1
                    check += rings[level, right & ((RING >> level) - 1)]
                left >>= 1
                right >>= 1
                level += 1
    return check


@compiled
def tree(updates: NDArray[np.bool_], numbers: Ints, nodes: Ints, count: int) -> int:
    """PSoup: the red-black tree."""
    check = 0
    for i in range(numbers.size):
        if updates[i]:
            free = psoup.remove_oldest(nodes)
            psoup.append(nodes, free, count, numbers[i])
            count += 1
        else:
            check += psoup.sum_since(nodes, count - numbers[i])
    return check


@compiled
def materialize_all(updates: NDArray[np.bool_], numbers: Ints, ring: Ints, sums: Ints, count: int) -> int:
    """Every update goes to all 1000 sums; a lookup reads one."""
    check = 0
    for i in range(numbers.size):
        if updates[i]:
            for n in range(1, sums.size):
                sums[n] += numbers[i] - ring[(count - n) & (RING - 1)]
            ring[count & (RING - 1)] = numbers[i]
            count += 1
        else:
            check += sums[numbers[i]]
    return check


@compiled
def materialize_none(updates: NDArray[np.bool_], numbers: Ints, ring: Ints, count: int) -> int:
    """An update is stored; a lookup adds up its window."""
    check = 0
    for i in range(numbers.size):
        if updates[i]:
            ring[count & (RING - 1)] = numbers[i]
            count += 1
        else:
            for n in range(1, numbers[i] + 1):
                check += ring[(count - n) & (RING - 1)]
    return check


class Contest:
    """One input for all: a full window, then updates (a value) and lookups (a window) in random order."""

    def __init__(self, share: float, inputs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.updates = rng.random(inputs) < share
        values = rng.integers(1, 1000, inputs)
        self.numbers = np.where(self.updates, values, rng.integers(0, WINDOWS, inputs))
        self.first = rng.integers(1, 1000, RING)

    def ways(self) -> dict[str, Callable[[], int]]:
        """Each way as a piece of work that starts with the same full window."""
        first, updates, numbers = self.first, self.updates, self.numbers
        prefixes = np.cumsum(first)
        ring = np.roll(prefixes, 1)  # ring[c & 1023] is the sum of the first c values
        rings = np.zeros((11, RING), np.int64)
        for level in range(11):
            blocks = first.reshape(-1, 1 << level).sum(axis=1)
            rings[level, : len(blocks)] = blocks
        nodes = psoup.empty(RING)
        for i in range(RING):
            psoup.append(nodes, i + 1, i, first[i])
        sums = np.concatenate([[0], np.cumsum(first[::-1])])[:WINDOWS]
        return {
            "R-INT": lambda: running(updates, numbers, ring.copy(), RING),
            "B-INT": lambda: interval(updates, numbers, rings.copy(), RING),
            "PSoup": lambda: tree(updates, numbers, nodes.copy(), RING),
            "all": lambda: materialize_all(updates, numbers, first.copy(), sums.copy(), RING),
            "none": lambda: materialize_none(updates, numbers, first.copy(), RING),
        }


def run(quick: bool, plots: Path | None) -> dict[str, list[float]]:
    """Inputs per second of each way against the share of updates."""
    inputs, repeat = (20_000, 2) if quick else (100_000, 7)
    rates: dict[str, list[float]] = {}
    for seed, share in enumerate(SHARES):
        ways = Contest(share, inputs, seed).ways()
        checks = {name: work() for name, work in ways.items()}
        assert len(set(checks.values())) == 1, f"the ways differ: {checks}"
        best = Best()
        best.turns(ways, repeat)
        for name in ways:
            rates.setdefault(name, []).append(inputs / best.seconds[name])
    rows = [[f"{share:.0%}", *(rates[name][i] for name in rates)] for i, share in enumerate(SHARES)]
    table("Figure 9: 1000 SUM windows, inputs per second", ["updates", *rates], rows)
    shape(rates)
    if plots is not None:
        lines = {name: (SHARES, rate) for name, rate in rates.items()}
        panel = Panel("1000 SUM windows over 0..999 tuples", "updates / inputs", "inputs per second", lines, logy=True)
        draw(plots / "shared_figure9.png", [panel])
    return rates


def shape(rates: dict[str, list[float]]) -> dict[str, bool]:
    """What the paper saw."""
    whole, none, running_, blocks, psoup_ = (rates[name] for name in ("all", "none", "R-INT", "B-INT", "PSoup"))
    middle = len(SHARES) // 2
    return {
        "all": verdict("materialize all collapses away from all lookups (10 x)", whole[middle] * 10 < whole[0]),
        "none": verdict("materialize none collapses away from all updates (10 x)", none[middle] * 10 < none[-1]),
        "best": verdict(
            "R-INT is the best of the three that are stable, everywhere",
            all(r > max(b, p) for r, b, p in zip(running_, blocks, psoup_, strict=True)),
        ),
        "between": verdict(
            "R-INT is the best of all five from 10 % to 90 % updates",
            all(running_[i] == max(rate[i] for rate in rates.values()) for i in range(1, len(SHARES) - 1)),
        ),
        "passes": verdict(
            "B-INT / PSoup grows as updates grow, and is above 1 at the end",
            blocks[-1] / psoup_[-1] > max(1.0, blocks[0] / psoup_[0]),
        ),
    }
