"""Lookups in panes that are still open: those of join results, which come into old panes too (thesis 8.3.2).

The cells (pane, group) are put in order of their panes once, for all windows and components: a basic-interval-join
synopsis whose windows are answered in one scan (rule CS5). O(c log c) for c cells, and for each window the cells that
are in it, or for what can be subtracted those that leave since the window before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.aggregates import Component, Subtractable
from windrow.kernels import cells as kernels
from windrow.kernels.jit import Codes, Ints


class OpenScan:
    """The open cells behind each start, group by group."""

    def __init__(self, edges: Ints, slots: Ints, gids: Ints, cells: Ints, starts: Ints, groups: int) -> None:
        order = np.argsort(edges, kind="stable")
        rank = np.empty(len(edges), np.int64)
        rank[order] = np.arange(len(edges))
        panes = rank[slots]
        by_pane = np.argsort(panes, kind="stable")
        self._gids = np.ascontiguousarray(gids[by_pane], np.int64)
        self._cells = cells[by_pane]
        self._bounds = np.searchsorted(panes[by_pane], np.arange(len(edges) + 1)).astype(np.int64)
        self._first = np.searchsorted(edges[order], starts, side="right").astype(np.int64)
        self._last = np.full(len(starts), len(edges), np.int64)
        self._groups = max(1, groups)
        most = int(np.minimum(self._bounds[self._last] - self._bounds[self._first], self._groups).sum())
        present: Codes = np.empty(most + 1, np.int32)
        self.offsets: Ints = np.empty(len(starts) + 1, np.int64)
        """Rows offsets[i]..offsets[i+1]-1 belong to window i."""
        kernels.list_present_cells(
            self._bounds, self._gids, self._first, self._last, self._groups, self.offsets, present
        )  # fmt: skip
        self.present: Codes = present[: self.offsets[-1]]
        """The group of each row."""

    def take_all(self) -> None:
        """Every window has the one group that there is, also where nothing came."""
        self.offsets = np.arange(len(self._first) + 1)
        self.present = np.zeros(len(self._first), np.int32)

    def answer(self, component: Component, words: Sequence[Ints]) -> Ints:
        """The words [words, rows] of a component that is kept in these accumulators, by cell."""
        cells = np.ascontiguousarray(np.stack([word[self._cells] for word in words], axis=1)[:, :, None])
        out: Ints = np.empty((len(words), int(self.offsets[-1])), np.int64)
        where = (self._bounds, self._gids, cells, self._first, self._last, self._groups)
        if isinstance(component, Subtractable):
            kernels.slide_sums(*where, self.offsets, self.present, out)
        else:
            kernels.scan_cells(component.op, *where, component.identity, self.offsets, self.present, out)
        return out
