"""When does a substream filter pay in the engine? Scan and filter against the number of groups, with pane partials.

Groups get rows at Zipf rates; every slide closes one pane; a lookup asks which groups have more than v rows in a
window, about 0.2 % of them. The engine scans or filters by what this costs (`windrow.synopses.candidate_search`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.measure import Best, Panel, draw, table, verdict
from windrow.kernels.within import list_within
from windrow.synopses.substream_filter import SubstreamFilter
from windrow.synopses.sum_search import LEVELS_PER_SIZE

PANES = 24
LOOKUPS = 50


def run(quick: bool, plots: Path | None) -> dict[int, tuple[float, float, float]]:
    """Per number of groups: microseconds of a lookup by scan and by filter, nanoseconds of a partial that enters."""
    sizes = (5000, 50_000) if quick else (5000, 20_000, 100_000, 300_000)
    repeat = 2 if quick else 5
    results: dict[int, tuple[float, float, float]] = {}
    rows: list[list[object]] = []
    for groups in sizes:
        scan, found, push = measured(groups, repeat)
        results[groups] = scan, found, push
        # One window per slide saves (scan - found); a partial that enters costs push.
        changing = (scan - found) * 1000 / push / groups
        rows.append([groups, scan, found, scan / found, push, f"{100 * changing:.2g} %"])
    columns = ["groups", "scan µs", "filter µs", "scan/filter", "push ns", "pays per window/slide up to"]
    table("Substream filter in the engine: one lookup, and one pane partial (p = 2)", columns, rows)
    print("  (last column: the share of groups that may change per slide, for each window that is looked up per slide)")
    last = results[sizes[-1]]
    verdict("a lookup by the filter is cheaper than a scan at the most groups", last[1] < last[0])
    if plots is not None:
        lines = {
            "scan of prefix sums": (sizes, [results[size][0] for size in sizes]),
            "substream filter, checked": (sizes, [results[size][1] for size in sizes]),
        }
        panel = Panel("Groups with more than v rows (0.2 %)", "groups", "µs per lookup", lines, logx=True, logy=True)
        draw(plots / "shared_substream_scale.png", [panel])
    return results


def measured(groups: int, repeat: int) -> tuple[float, float, float]:
    """Scan µs, filter µs, push ns; both ways find the same groups."""
    rng = np.random.default_rng(groups)
    # Groups are numbered by first appearance, so the busy ones come first.
    rates = 3.0 * (groups / np.arange(1, groups + 1)) ** 0.7 / PANES
    partials = rng.poisson(rates, (PANES, groups))
    prefixes = np.zeros((PANES + 1, 1, groups), np.int64)
    np.cumsum(partials, axis=0, out=prefixes[1:, 0])
    filtered = SubstreamFilter(LEVELS_PER_SIZE, most=1 << 20, keys=groups)
    best = Best()
    entered = 0
    for pane in range(PANES):
        gids = np.flatnonzero(partials[pane]).astype(np.int32)
        ticks = np.full(len(gids), pane + 1)
        values = partials[pane, gids]
        if pane < PANES - 1:
            filtered.update(gids, ticks, values)
        else:
            entered = len(gids)
            best.once("push", lambda gids=gids, ticks=ticks, values=values: filtered.update(gids, ticks, values))  # type: ignore[misc]
    first = rng.integers(PANES // 4, PANES // 2, LOOKUPS)
    last = np.full(LOOKUPS, PANES)
    low = np.array([int(np.quantile(prefixes[-1, 0] - prefixes[a, 0], 0.998)) + 1 for a in first])
    high = np.full(LOOKUPS, np.iinfo(np.int64).max)
    answers: dict[str, list[int]] = {}

    def scan() -> None:
        offsets = np.zeros(LOOKUPS + 1, np.int64)
        present = np.empty(2 * groups, np.int32)
        done = list_within(prefixes, prefixes, first, last, groups, low, high, 0, offsets, present)
        assert done == LOOKUPS
        answers["scan"] = present[: offsets[-1]].tolist()

    def find() -> None:
        found = filtered.above(first, low - 1)
        window = np.repeat(np.arange(LOOKUPS), np.diff(found.offsets))
        sums = prefixes[PANES, 0, found.keys] - prefixes[first[window], 0, found.keys]
        answers["filter"] = found.keys[sums >= low[window]].tolist()

    best.turns({"scan": scan, "filter": find}, repeat)
    assert answers["scan"] == answers["filter"], "scan and filter differ"
    seconds = best.seconds
    return seconds["scan"] / LOOKUPS * 1e6, seconds["filter"] / LOOKUPS * 1e6, seconds["push"] / entered * 1e9
