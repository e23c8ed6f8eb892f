"""Which group things belong to that stand pane by pane in a queue, in order of pane and group."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.open_entries import renumber
from windrow.synopses.queue import Queue
from windrow.synopses.snapshot import numpy_of


class PaneIndex:
    """The group of each thing, and where the things of each pane begin; O(1) per thing."""

    def __init__(self) -> None:
        self._gids = Queue(np.int64)
        self._bounds: Ints = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._gids.nbytes + int(self._bounds.nbytes)

    def push(self, panes: Ints, gids: Ints, count: int) -> None:
        """So many more panes; panes[i] is counted from the first of them, ascending."""
        ends = np.searchsorted(panes, np.arange(count), "right")
        self._bounds = np.concatenate([self._bounds, self._bounds[-1] + ends])
        self._gids.push(gids)

    def drop(self, panes: int) -> int:
        """Forget panes; says how many things were in them."""
        gone = int(self._bounds[panes])
        self._gids.drop(gone)
        self._bounds = self._bounds[panes:] - gone
        return gone

    def select(self, live: Ints) -> None:
        """Group live[k] becomes k."""
        renumber(self._gids.rows, live)

    def by_group(self, low: int, high: int, groups: int) -> tuple[Ints, Ints, Ints]:
        """For panes low..high-1: the pane and place of each thing, by group and pane, and where groups begin."""
        begin, end = int(self._bounds[low]), int(self._bounds[high])
        gids = self._gids.rows[begin:end]
        order = np.argsort(gids, kind="stable")
        panes = np.repeat(np.arange(low, high), np.diff(self._bounds[low : high + 1]))
        return panes[order], order + begin, np.searchsorted(gids[order], np.arange(groups + 1)).astype(np.int64)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"gids": self._gids.rows, "bounds": self._bounds}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._gids.load(numpy_of(arrays["gids"]))
        self._bounds = numpy_of(arrays["bounds"])
