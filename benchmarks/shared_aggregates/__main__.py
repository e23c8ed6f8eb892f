"""Shared sliding-window aggregates: the experiments of the papers, on this machine.

    python -m benchmarks.shared_aggregates [--quick] [--only figure9 …] [--plot-dir build/benchmarks]

Look at the ratios: both sides of each are measured in one process, in turns, in processor time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.shared_aggregates import figure6_3, figure9, figure12, figures10_11, many_windows, substream_scale

EXPERIMENTS: dict[str, Callable[[bool, Path | None], object]] = {
    "figure9": figure9.run,
    "figures10_11": figures10_11.run,
    "figure12": figure12.run,
    "substream_scale": substream_scale.run,
    "figure6_3": figure6_3.run,
    "many_windows": many_windows.run,
}


def main() -> None:
    """Run the experiments that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs and few turns: a minute for everything")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="some of them")
    parser.add_argument("--plot-dir", type=Path, default=None, help="where pictures go (default: none)")
    options = parser.parse_args()
    for name in options.only:
        EXPERIMENTS[name](options.quick, options.plot_dir)


if __name__ == "__main__":
    main()
