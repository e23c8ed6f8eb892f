"""002 Figure 12: which of 5,000 symbols have more than v trades in the last 15 min to 3 h? Lookups and updates in turn.

Naïve: R-INT per key, one search for the left edge in the timestamps of every key. CI-COUNT: candidates from the
substream filter; those that it is not sure of are checked with the same R-INT. As a third way, the pane scan: prefix
sums of all keys per pane of 15 s, scanned for every lookup, which is right at pane edges only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Best, Panel, compiled, draw, table, verdict
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.substream import list_above, push
from windrow.synopses.substream_filter import SubstreamFilter

KEYS = 5000
DAY = 23_400_000
"""Milliseconds of trading."""
LENGTHS = tuple(minutes * 60_000 for minutes in (15, 30, 60, 120, 180))
SELECTIVITY = 0.04
PANE = 15_000
LEVELS = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass
class Market:
    """A day of trades; timestamps by key, one after the other, and where each key begins."""

    keys: Codes
    ticks: Ints
    begins: Ints
    by_key: Ints
    before: int
    """So many trades are in already when the clock starts."""
    lengths: Ints
    thresholds: Ints
    """One window and threshold per measured trade."""


def market(trades: int, measured: int, skew: float = 1.0, seed: int = 3) -> Market:
    """Zipf keys in uniform time; thresholds such that about 4 % of the keys are above.

    Keys are numbered in the order of their first trade, as a dictionary of keys does.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, KEYS + 1) ** skew
    symbols = rng.choice(KEYS, trades, p=weights / weights.sum())
    _, first = np.unique(symbols, return_index=True)
    number = np.zeros(KEYS, np.int32)
    number[symbols[np.sort(first)]] = np.arange(len(first))
    keys = number[symbols]
    ticks = np.sort(rng.integers(0, DAY, trades))
    order = np.argsort(keys, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=KEYS))])
    before = trades - measured
    lengths = rng.choice(LENGTHS, measured)
    now = ticks[before]
    v = {}
    for length in LENGTHS:
        counts = np.bincount(keys[:before][ticks[:before] > now - length], minlength=KEYS)
        v[length] = int(np.quantile(counts, 1 - SELECTIVITY))
    thresholds = np.array([v[length] for length in lengths.tolist()])
    return Market(keys, ticks, begins, ticks[order], before, lengths, thresholds)


@compiled
def count_since(by_key: Ints, begin: int, length: int, start: int) -> int:
    """R-INT of one key: the elements after `start` are those from the first later timestamp on."""
    low = 0
    high = length
    while low < high:
        middle = (low + high) >> 1
        if by_key[begin + middle] > start:
            high = middle
        else:
            low = middle + 1
    return length - low


@compiled
def naive(
    keys: Codes, ticks: Ints, begins: Ints, by_key: Ints, before: int, sizes: Ints, lengths: Ints, thresholds: Ints
) -> int:
    """Update, look up every key, update, …; a checksum of the keys found."""
    check = 0
    for n in range(lengths.size):
        i = before + n
        sizes[keys[i]] += 1
        start = ticks[i] - lengths[n]
        for k in range(sizes.size):
            if count_since(by_key, begins[k], sizes[k], start) > thresholds[n]:
                check += k + 1
    return check


@compiled
def collective(
    keys: Codes,
    ticks: Ints,
    begins: Ints,
    by_key: Ints,
    before: int,
    sizes: Ints,
    lengths: Ints,
    thresholds: Ints,
    newest: Ints,
    oldest: Ints,
    starts: Ints,
    totals: Ints,
    p: int,
    farthest: int,
    likely: Ints,
    certain: Ints,
    spare: Codes,
    found: Codes,
    checked: Ints,
) -> int:
    """CI-COUNT with R-INT: the same checksum; checked[0] and [1] count candidates, and those that were checked."""
    check = 0
    for n in range(lengths.size):
        i = before + n
        sizes[keys[i]] += 1
        push(newest, oldest, starts, totals, p, farthest, keys[i], ticks[i], 1)
        start = ticks[i] - lengths[n]
        count = list_above(newest, starts, likely[n], start, spare, found)
        checked[0] += count
        sure = newest[certain[n]]
        for c in range(count):
            k = found[c]
            if sure[k] > start:
                check += k + 1
            else:
                checked[1] += 1
                if count_since(by_key, begins[k], sizes[k], start) > thresholds[n]:
                    check += k + 1
    return check


@compiled
def scan(prefixes: Ints, last: int, widths: Ints, thresholds: Ints) -> int:
    """Lookups at pane granularity: two prefix sums of every key."""
    check = 0
    for n in range(widths.size):
        upper = prefixes[last]
        lower = prefixes[last - widths[n]]
        for k in range(prefixes.shape[1]):
            if upper[k] - lower[k] > thresholds[n]:
                check += k + 1
    return check


class Collective:
    """A filter that has seen the trades before the measured ones, ready to be measured again and again."""

    def __init__(self, day: Market, p: int) -> None:
        self.day = day
        self.filter = SubstreamFilter(p, most=int(day.thresholds.max()) + 1, keys=KEYS)
        self.filter.update(day.keys[: day.before], day.ticks[: day.before])
        needed = day.thresholds + 1
        self.likely = np.searchsorted(self.filter.farthest_of, needed, side="right") - 1
        self.certain = np.searchsorted(self.filter.nearest_of, needed)
        self.state = [self.filter.newest.copy(), self.filter.oldest.copy(), self.filter.lengths.copy()]
        self.checked = np.zeros(2, np.int64)

    def reset(self) -> None:
        """Back to before the measured trades."""
        for array, copy in zip((self.filter.newest, self.filter.oldest, self.filter.lengths), self.state, strict=True):
            array[:] = copy
        self.checked[:] = 0

    def work(self, sizes: Ints) -> int:
        """All measured trades, each with a lookup."""
        day, one = self.day, self.filter
        room = int(one.starts[1])
        spare, found = np.empty(room, np.int32), np.empty(room, np.int32)
        return int(
            collective(
                day.keys, day.ticks, day.begins, day.by_key, day.before, sizes, day.lengths, day.thresholds, one.newest,
                one.oldest, one.starts, one.lengths, one.p, int(one.farthest_of[-1]), self.likely, self.certain, spare,
                found, self.checked,
            )
        )  # fmt: skip


def run(quick: bool, plots: Path | None) -> dict[str, float]:
    """Inputs per second for each p, beside the naïve way."""
    trades, measured, repeat = (200_000, 300, 2) if quick else (2_000_000, 4000, 5)
    day = market(trades, measured)
    sizes = np.bincount(day.keys[: day.before], minlength=KEYS)
    few = measured // 10
    best = Best()

    def slowly() -> int:
        arrays = (day.keys, day.ticks, day.begins, day.by_key, day.before, sizes.copy())
        return int(naive(*arrays, day.lengths[:few], day.thresholds[:few]))

    best.turns({"naive": slowly}, repeat)
    rates = {"naive": 2 * few / best.seconds["naive"]}
    expected = naive(day.keys, day.ticks, day.begins, day.by_key, day.before, sizes.copy(), day.lengths, day.thresholds)
    rows: list[list[object]] = [["naïve (R-INT per key)", "", "", rates["naive"], 1.0, "", ""]]
    for p in LEVELS:
        one = Collective(day, p)
        assert one.work(sizes.copy()) == expected, f"CI-COUNT with p = {p} differs from the naïve answers"
        candidates, checked = (one.checked / measured).tolist()
        seconds = _best_after_reset(one, sizes, repeat)
        name = f"p = {p}"
        rates[name] = 2 * measured / seconds
        update = _update_nanoseconds(one)
        rows.append([name, candidates, checked, rates[name], rates[name] / rates["naive"], update, one.filter.levels])
    rows.append(_pane_scan(day, repeat, rates))
    columns = ["way", "candidates", "checked", "inputs/s", "x naïve", "update ns", "levels"]
    table("Figure 12: CI-COUNT, 5,000 keys, half of the inputs are lookups, exact answers", columns, rows)
    ratio = max(rates[f"p = {p}"] for p in LEVELS) / rates["naive"]
    verdict(f"the best p is {ratio:.0f} x the naïve way (paper 25 x, aim 50 x)", ratio >= 50)
    if plots is not None:
        lines = {
            "CI-COUNT with R-INT": (LEVELS, [rates[f"p = {p}"] for p in LEVELS]),
            "naïve: R-INT per key": (LEVELS, [rates["naive"]] * len(LEVELS)),
            "scan of prefix sums per pane": (LEVELS, [rates["pane scan"]] * len(LEVELS)),
        }
        panel = Panel("Which of 5,000 keys have more than v trades?", "p", "inputs per second", lines, logy=True)
        draw(plots / "shared_figure12.png", [panel])
    return rates


def _best_after_reset(one: Collective, sizes: NDArray[np.int64], repeat: int) -> float:
    best = Best()
    for _ in range(repeat):
        one.reset()
        counts = sizes.copy()
        best.once("work", partial(one.work, counts))
    return best.seconds["work"]


def _update_nanoseconds(one: Collective) -> float:
    day = one.day
    one.reset()
    best = Best()
    best.once("update", lambda: one.filter.update(day.keys[day.before :], day.ticks[day.before :]))
    return best.seconds["update"] / len(day.lengths) * 1e9


def _pane_scan(day: Market, repeat: int, rates: dict[str, float]) -> list[object]:
    panes = day.ticks[: day.before] // PANE
    last = int(panes[-1]) + 1
    flat = np.bincount(panes * KEYS + day.keys[: day.before], minlength=last * KEYS).reshape(last, KEYS)
    prefixes = np.concatenate([np.zeros((1, KEYS), np.int64), np.cumsum(flat, axis=0)])
    best = Best()
    best.turns({"scan": lambda: scan(prefixes, last, day.lengths // PANE, day.thresholds)}, repeat)
    # Updates are one addition to an open pane: nothing beside the scan.
    rates["pane scan"] = 2 * len(day.lengths) / best.seconds["scan"]
    return ["pane scan (15 s panes)", "", "", rates["pane scan"], rates["pane scan"] / rates["naive"], "", ""]
