"""Best times of short pieces of work, and the form of the tables and plots.

The clock counts the processor time of the thread that works: neighbours on the machine do not count, and the work here
is single-threaded. Pieces are measured in turns, and the best turn of each counts.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import thread_time
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first call; not cached on disk, since these call kernels of other files."""
    return cast(Function, numba.njit(nogil=True)(function))


@dataclass
class Best:
    """The best time of each named piece of work."""

    seconds: dict[str, float] = field(default_factory=dict)

    def turns(self, work: Mapping[str, Callable[[], object]], repeat: int) -> None:
        """Each piece `repeat` times, in turns; the first turn, which may compile, does not count."""
        for turn in range(repeat + 1):
            for name, piece in work.items():
                if turn:
                    self.once(name, piece)
                else:
                    piece()

    def once(self, name: str, piece: Callable[[], object]) -> None:
        """One turn of one piece."""
        gc.collect()
        began = thread_time()
        piece()
        spent = max(thread_time() - began, 1e-9)
        self.seconds[name] = min(spent, self.seconds.get(name, spent))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout: first column left, numbers right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(columns)]
    print(f"\n{title}")
    for row in [list(columns), *cells]:
        padded = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(["", row[0].ljust(widths[0]), *padded[1:]]))


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def verdict(what: str, holds: bool) -> bool:
    """One line: whether what is expected was seen."""
    print(f"  {'yes' if holds else 'NO '}  {what}")
    return holds


@dataclass(frozen=True)
class Panel:
    """One set of axes: lines by name, each (x, y)."""

    title: str
    xlabel: str
    ylabel: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logx: bool = False
    logy: bool = False


def draw(path: Path, panels: Sequence[Panel], columns: int = 2) -> None:
    """All panels in one picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(6.2 * columns, 4.0 * rows), dpi=110, squeeze=False)
    axes: list[Any] = list(grid.flat)
    for one, panel in zip(axes, panels, strict=False):
        for name, (x, y) in panel.lines.items():
            one.plot(x, y, "o-", markersize=3.5, linewidth=1.3, label=name)
        one.set_title(panel.title, fontsize=10)
        one.set_xlabel(panel.xlabel)
        one.set_ylabel(panel.ylabel)
        if panel.logx:
            one.set_xscale("log")
        if panel.logy:
            one.set_yscale("log")
        else:
            one.set_ylim(bottom=0)
        one.grid(alpha=0.3)
        one.legend(fontsize=8)
    for one in axes[len(panels) :]:
        one.axis("off")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    print(f"picture: {path}")
