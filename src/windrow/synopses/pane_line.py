"""The panes of an axis, one after the other: their upper edges, and a number for each that never changes.

Edges are only appended, at the young end, and dropped at the old one; so queries with other windows may come at any
time, and what is older keeps the panes that it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING


class PaneLine:
    """Panes (edges[i-1], edges[i]], numbered from `first` on."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        """The edges of the panes that will be appended."""
        self.edges: Ints = np.empty(0, np.int64)
        self.first = 0
        self.kept_from = BEGINNING
        """What is at or before it is gone."""

    @property
    def last(self) -> int:
        """The youngest edge there is, or was."""
        return int(self.edges[-1]) if len(self.edges) else self.kept_from

    def extend(self, floor: int, upto: int) -> None:
        """Append panes until one holds `upto`; if there is none yet, nothing at or before `floor` will come."""
        if not len(self.edges):
            self.kept_from = max(self.kept_from, floor)
        begin = self.last
        if upto <= begin:
            return
        end = self.grid.ceil(upto)
        parts: list[Ints] = [
            np.arange(begin + 1 + (phase - begin - 1) % step, end + 1, step) for step, phase in self.grid.progressions
        ]
        self.edges = np.concatenate([self.edges, np.unique(np.concatenate(parts)).astype(np.int64)])

    def end_pane(self, at: int) -> None:
        """No pane reaches behind `at`: all that came so far is at or before it."""
        if len(self.edges) and self.edges[-1] > at:
            self.edges = np.append(self.edges[:-1], at)

    def number(self, ts: Ints) -> Ints:
        """The pane of each instant."""
        found: Ints = np.searchsorted(self.edges, ts, side="left") + self.first
        return found

    def border(self, starts: Ints) -> Ints:
        """The first pane behind each instant, if one is there that ends at it."""
        found: Ints = np.searchsorted(self.edges, starts, side="right") + self.first
        return found

    def drop(self, upto: int) -> None:
        """Forget the panes that end at or before an instant."""
        if upto > self.kept_from:
            gone = int(np.searchsorted(self.edges, upto, side="right"))
            self.edges, self.first, self.kept_from = self.edges[gone:], self.first + gone, upto

    def snapshot(self) -> dict[str, Any]:
        """JSON-able."""
        grid = [list(one) for one in self.grid.without_cuts().progressions]
        known = {"edges": self.edges.tolist(), "first": self.first, "kept_from": self.kept_from}
        return {"grid": grid, "cuts": self.grid.cuts, **known}

    def restore(self, meta: Mapping[str, Any]) -> None:
        """Become what `snapshot` gave."""
        self.grid = Grid(tuple((step, phase) for step, phase in meta["grid"])).with_cuts(meta["cuts"])
        self.edges = np.array(meta["edges"], np.int64)
        self.first, self.kept_from = meta["first"], meta["kept_from"]
