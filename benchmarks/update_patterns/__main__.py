"""Queries 1 to 4 of the thesis under three strategies: upa, nt (negative tuples), direct (Figures 3.8 to 3.15).

    python -m benchmarks.update_patterns [--quick] [--only query1_ftp …] [--windows 2000 …] [--zeek DIR]
                                         [--plot-dir build/benchmarks]

`--zeek` takes the folder of zeek-dns.parquet and zeek-ssl.parquet, and asks three questions about them too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.update_patterns.figures import pictures, shapes, show
from benchmarks.update_patterns.maintained import catalog
from benchmarks.update_patterns.measured import EPOCHS, QUICK_EPOCHS, Found, measured, ticks_needed
from benchmarks.update_patterns.queries import QUESTIONS, ZEEK
from benchmarks.update_patterns.trace import COLUMNS, LINKS, generated, zeek

WINDOWS = (2000, 6000, 20_000, 60_000, 200_000)
"""The lengths of the thesis (3.6.1), in units of time."""
QUICK_WINDOWS = (200, 1000)
ZEEK_WINDOWS = (1000, 3000, 10_000, 30_000, 100_000)
"""Milliseconds."""
ZEEK_EPOCHS = {1: 100, 100: 60, 1000: 20}


def run(
    quick: bool,
    plots: Path | None,
    only: Sequence[str] = tuple(QUESTIONS),
    logs: Path | None = None,
    lengths: Sequence[int] | None = None,
) -> tuple[dict[str, Found], dict[str, bool]]:
    """What was measured, and which shapes were seen."""
    usual, epochs, turns = (QUICK_WINDOWS, QUICK_EPOCHS, 1) if quick else (WINDOWS, EPOCHS, 2)
    shortest = sorted(lengths or usual)
    windows = {name: [*shortest, *(() if quick or lengths else QUESTIONS[name].longer)] for name in only}
    trace = generated(ticks_needed(max(max(own) for own in windows.values()), epochs), len(LINKS))
    known = catalog(COLUMNS, trace.links)
    found = {}
    for name in only:
        found[name] = measured(QUESTIONS[name], trace, known, windows[name], epochs, turns)
        show(found[name])
    if logs is not None:
        trace = zeek(logs)
        for name, question in ZEEK.items():
            usual, epochs = (ZEEK_WINDOWS[:2], QUICK_EPOCHS) if quick else (ZEEK_WINDOWS, ZEEK_EPOCHS)
            found[name] = measured(question, trace, known, list(usual), epochs, turns)
            show(found[name])
    held = shapes(found)
    if plots is not None:
        pictures(plots, found)
    return found, held


def main() -> None:
    """Run the experiments that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short windows and few epochs: some seconds")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="some of them")
    parser.add_argument("--windows", nargs="+", type=int, default=None, help="other lengths of the windows")
    parser.add_argument("--zeek", type=Path, default=None, help="folder of the two Zeek logs (default: none)")
    parser.add_argument("--plot-dir", type=Path, default=None, help="where patterns_*.png go (default: none)")
    options = parser.parse_args()
    run(options.quick, options.plot_dir, options.only, options.zeek, options.windows)


if __name__ == "__main__":
    main()
