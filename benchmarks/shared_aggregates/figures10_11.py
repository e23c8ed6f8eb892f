"""002 Figures 10 and 11: updates against N_max, lookups against W, of R-INT/SUM, B-INT/MAX, L-INT/MAX and B-INT-QNT.

These are the library's own synopses, each tuple a pane of its own, without groups; beside them stand the NumPy calls
that do the least possible work. Lookup windows are anywhere in the last N_max = 131,072 tuples, suffix and historical.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Best, Panel, draw, table, verdict
from windrow.aggregates import Component
from windrow.aggregates.extremes import Max
from windrow.aggregates.sums import SumInts
from windrow.kernels.jit import Ints
from windrow.synopses.registry import SYNOPSES, synopsis
from windrow.synopses.synopsis import Synopsis

N_MAX = 1 << 17
BATCH = 1024
"""Tuples per call: a batch is what the engine hands over."""
KINDS: dict[str, tuple[str, Component]] = {
    "R-INT/SUM": ("running", SumInts()),
    "B-INT/MAX": ("interval", Max()),
    "L-INT/MAX": ("landmark", Max()),
}
QUANTILES = "B-INT-QNT"


def present() -> list[str]:
    """Which of them the library has."""
    names = [kind for kind, (name, _) in KINDS.items() if name in SYNOPSES]
    try:
        import_module("windrow.synopses.quantiles")
        names.append(QUANTILES)
    except ImportError:
        pass
    for kind in (*KINDS, QUANTILES):
        if kind not in names:
            print(f"  (this version of the library has no {kind})")
    return names


def made(kind: str, lengths: tuple[int, ...]) -> Synopsis:
    """An empty synopsis that knows which windows will be asked for, if it wants to."""
    name, component = KINDS[kind]
    kept = synopsis(component, name, 1)
    prepare: Callable[[tuple[int, ...]], None] | None = getattr(kept, "prepare", None)
    if prepare is not None:
        prepare(lengths)
    return kept


class Feed:
    """Tuples in batches into a synopsis that keeps the last N_max."""

    def __init__(self, kind: str, values: Ints, most: int) -> None:
        self.kind = kind
        self.values = values
        self.most = most
        self.edge = 0
        if kind == QUANTILES:
            self.kept: Any = import_module("windrow.synopses.quantiles").Quantiles(most)
        else:
            self.kept = made(kind, (max(1, most // 2), most))

    def push(self) -> None:
        """All values, by batches."""
        for at in range(0, len(self.values), BATCH):
            batch = self.values[at : at + BATCH]
            if self.kind == QUANTILES:
                self.kept.update(batch.astype(np.float64))
                continue
            self.kept.update(np.arange(self.edge + 1, self.edge + 1 + len(batch)), batch.reshape(1, -1, 1))
            self.edge += len(batch)
            self.kept.expire(self.edge - self.most)


def update_rates(kinds: list[str], sizes: tuple[int, ...], tuples: int, repeat: int) -> dict[str, list[float]]:
    """Tuples per second against N_max, and those of numpy.cumsum over the same values."""
    values = np.random.default_rng(1).integers(0, 1000, tuples)
    out = np.empty(BATCH, np.int64)

    def cumsum() -> None:
        for at in range(0, tuples, BATCH):
            part = values[at : at + BATCH]
            np.cumsum(part, out=out[: len(part)])

    rates: dict[str, list[float]] = {}
    for most in sizes:
        work: dict[str, Callable[[], object]] = {"numpy.cumsum": cumsum}
        for kind in kinds:
            feed = Feed(kind, values, most)
            for _ in range(-(-most // tuples)):
                feed.push()
            work[kind] = feed.push
        best = Best()
        best.turns(work, repeat)
        for name in work:
            rates.setdefault(name, []).append(tuples / best.seconds[name])
    return rates


def lookup_rates(kinds: list[str], widths: tuple[int, ...], most: int, repeat: int) -> dict[str, list[float]]:
    """Lookups per second against W, in batches, and those of two numpy.take and a subtraction."""
    rng = np.random.default_rng(2)
    values = rng.integers(0, 1000, most)
    prefixes = np.concatenate([[0], np.cumsum(values)])
    rates: dict[str, list[float]] = {}
    kept: dict[str, Any] = {}
    for kind in kinds:
        feed = Feed(kind, values, most)
        if kind != QUANTILES:
            feed.kept = made(kind, widths)
        feed.push()
        kept[kind] = feed.kept
    for width in widths:
        count = 20_000
        first = rng.integers(0, most - width + 1, count)
        last = first + width
        out = np.empty((1, count), np.int64)
        offsets = np.arange(count + 1)

        def take(first: Ints = first, last: Ints = last) -> object:
            return np.take(prefixes, last) - np.take(prefixes, first)

        def answer(
            one: Any, first: Ints = first, last: Ints = last, out: Ints = out, offsets: Ints = offsets
        ) -> Callable[[], object]:
            return lambda: one.answer(first, last, 1, offsets, np.empty(0, np.int32), out)

        def quantile(one: Any, first: Ints = first[:2000], last: Ints = last[:2000]) -> Callable[[], object]:
            return lambda: one.lookup(first, last, (0.5,))

        work: dict[str, Callable[[], object]] = {"two numpy.take": take}
        for kind in kinds:
            work[kind] = quantile(kept[kind]) if kind == QUANTILES else answer(kept[kind])
        check(kinds, kept, values, first[:50], last[:50])
        best = Best()
        best.turns(work, repeat)
        for name in work:
            rates.setdefault(name, []).append((2000 if name == QUANTILES else count) / best.seconds[name])
    return rates


def check(kinds: list[str], kept: dict[str, Any], values: Ints, first: Ints, last: Ints) -> None:
    """The answers are right, before they are timed."""
    for kind in kinds:
        if kind == QUANTILES:
            got = kept[kind].lookup(first, last, (0.5,))[0]
            wanted = [np.sort(values[a:b])[max(1, (b - a) // 2) - 1] for a, b in zip(first, last, strict=True)]
        else:
            out = np.empty((1, len(first)), np.int64)
            kept[kind].answer(first, last, 1, np.arange(len(first) + 1), np.empty(0, np.int32), out)
            got = out[0]
            total = kind == "R-INT/SUM"
            wanted = [values[a:b].sum() if total else values[a:b].max() for a, b in zip(first, last, strict=True)]
        assert (got == np.array(wanted)).all(), f"{kind} gives wrong answers"


def run(quick: bool, plots: Path | None) -> dict[str, dict[str, list[float]]]:
    """Both figures, and whether the floors hold."""
    print("\nFigures 10 and 11")
    kinds = present()
    most = 100_000
    sizes = (1000, most) if quick else (1000, 3000, 10_000, 30_000, most)
    widths = (10, 1000, most) if quick else (10, 100, 1000, 10_000, 30_000, most)
    repeat = 2 if quick else 7
    updates = update_rates(kinds, sizes, 20 * BATCH if quick else 100 * BATCH, repeat)
    rows = [[size, *(updates[name][i] for name in updates)] for i, size in enumerate(sizes)]
    table("Figure 10: updates per second", ["N_max", *updates], rows)
    lookups = lookup_rates(kinds, widths, N_MAX, repeat)
    rows = [[width, *(lookups[name][i] for name in lookups)] for i, width in enumerate(widths)]
    table(f"Figure 11: lookups per second, N_max = {N_MAX:,}", ["W", *lookups], rows)
    floors(updates, lookups)
    if plots is not None:
        panels = [
            Panel("Updates", "N_max", "updates per second", {n: (sizes, r) for n, r in updates.items()}, True, True),
            Panel("Lookups", "W", "lookups per second", {n: (widths, r) for n, r in lookups.items()}, True, True),
        ]
        draw(plots / "shared_figures10_11.png", panels)
    return {"updates": updates, "lookups": lookups}


def floors(updates: dict[str, list[float]], lookups: dict[str, list[float]]) -> dict[str, bool]:
    """What is aimed at, at the worst size."""
    held = {}

    def ratio(what: str, base: list[float], ours: list[float], aim: float) -> None:
        worst = max(b / o for b, o in zip(base, ours, strict=True))
        held[what] = verdict(f"{what}: {worst:.2f} x (aim {aim:g} x)", worst <= aim)

    ratio("R-INT update / numpy.cumsum", updates["numpy.cumsum"], updates["R-INT/SUM"], 3)
    ratio("R-INT lookup / two numpy.take", lookups["two numpy.take"], lookups["R-INT/SUM"], 3)
    for kind in ("B-INT/MAX", "L-INT/MAX"):
        if kind in lookups:
            ratio(f"{kind} lookup / two numpy.take", lookups["two numpy.take"], lookups[kind], 10)
    if QUANTILES in lookups:
        rate = lookups[QUANTILES][-1]
        held[QUANTILES] = verdict(f"{QUANTILES} at W = 100,000: {rate:,.0f} lookups/s (aim 100,000)", rate >= 100_000)
    return held
