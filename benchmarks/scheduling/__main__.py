"""Scheduling policies on a simulated machine: Figures 8.7 to 8.10 of the thesis, and the speed of the simulator.

    python -m benchmarks.scheduling [--quick] [--only counted post measured scale] [--plot-dir build/benchmarks]

`counted` has the relative costs of the thesis, `measured` those of this library's synopses on this machine; `post` asks
how far the outcome depends on what post-processing costs. The time
between two updates is chosen such that conservative scheduling can just about keep pace with 160 queries at the low
rate; the high rate has twice the tuples and twice the different values in the same time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import table
from benchmarks.scheduling import post, scale
from benchmarks.scheduling.costs import Costs, counted, measured
from benchmarks.scheduling.figures import Found, interval, picture, shapes, show, simulated
from benchmarks.scheduling.workload import HIGH, LOW, SIZES

PARTS = ("counted", "post", "measured", "scale")

OTHERS: dict[str, Callable[[bool], object]] = {"post": post.run, "scale": scale.run}


def run(
    quick: bool, plots: Path | None, only: Sequence[str] = PARTS
) -> tuple[dict[str, Found], dict[str, dict[str, bool]]]:
    """What was found, and which shapes of the thesis were seen, by kind of costs."""
    sizes, updates, seeds = ((40, 240), 150, range(1)) if quick else (SIZES, 400, range(5))
    found: dict[str, Found] = {}
    held: dict[str, dict[str, bool]] = {}
    for kind in only:
        if kind in OTHERS:
            OTHERS[kind](quick)
            continue
        costs = {one.name: counted(one) if kind == "counted" else measured(one, quick) for one in (LOW, HIGH)}
        _show_costs(kind, costs, interval(costs["low"], updates, seeds))
        found[kind] = simulated(costs, sizes, updates, seeds)
        show(kind.capitalize(), found[kind])
        print(f"\nShapes of the thesis, {kind} costs")
        held[kind] = shapes(found[kind])
        if plots is not None:
            picture(plots / f"scheduling_{kind}.png", found[kind])
    return found, held


def _show_costs(kind: str, costs: dict[str, Costs], every: float) -> None:
    rows = [
        [name, *(number * 1e6 for one in costs.values() for number in _numbers(one, name))]
        for name in costs["low"].groups
    ]
    columns = ["group", *(f"{what}, {rate}" for rate in costs for what in ("start", "combine", "post", "read"))]
    table(f"{kind.capitalize()} costs, µs", columns, rows)
    for rate, one in costs.items():
        print(f"       {rate} rate: an update costs {one.update * 1e3:.2f} ms; mean error of the fit {one.error:.0%}")
    print(f"       time between two updates: {every * 1e3:.1f} ms")


def _numbers(costs: Costs, group: str) -> tuple[float, float, float, float]:
    one = costs.groups[group]
    return one.start, one.combine, one.post, one.read


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few updates and two sizes: a minute for everything")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of them")
    parser.add_argument("--plot-dir", type=Path, default=None, help="where pictures go (default: none)")
    options = parser.parse_args()
    run(options.quick, options.plot_dir, options.only)


if __name__ == "__main__":
    main()
