"""Joins: orders and algorithms of thesis 5.4 (Figures 5.2 to 5.4), how fast joins and δ* are, shared joins.

    python -m benchmarks.joins [--quick] [--only orders …] [--spark] [--plot-dir build/benchmarks]

`--spark` also runs Spark's stream-stream join on the same tuples (some minutes).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.joins import floors, intervals, orders, shared

EXPERIMENTS: dict[str, Callable[[bool, Path | None], object]] = {
    "orders": orders.run,
    "intervals": intervals.run,
    "floors": floors.run,
    "shared": shared.run,
}


def main() -> None:
    """Run the experiments that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs and few turns: some seconds")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="some of them")
    parser.add_argument("--spark", action="store_true", help="also Spark's stream-stream join")
    parser.add_argument("--plot-dir", type=Path, default=None, help="where pictures go (default: none)")
    options = parser.parse_args()
    for name in options.only:
        EXPERIMENTS[name](options.quick, options.plot_dir)
    if options.spark:
        from benchmarks.joins import spark_peer

        spark_peer.run(options.quick)


if __name__ == "__main__":
    main()
