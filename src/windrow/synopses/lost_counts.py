"""By how much the counters of a pane and group may be too low, where they are: for the upper bounds of counts.

O(1) per cell that has lost something, and O(log cells) per answer row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.collection import Windows
from windrow.synopses.entries import Entries
from windrow.synopses.pane_index import PaneIndex
from windrow.synopses.queue import Queue
from windrow.synopses.snapshot import numpy_of, prefixed, within


class LostCounts:
    """Of closed panes, in order of pane and group."""

    def __init__(self) -> None:
        self._cells = PaneIndex()
        self._counts = Queue(np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._cells.nbytes + self._counts.nbytes

    def push(self, lost: Entries, panes: int) -> None:
        """So many more panes, numbered from 0 in the entries, which are in order."""
        self._cells.push(lost.panes, lost.groups, panes)
        self._counts.push(lost.counts)

    def expire(self, panes: int) -> None:
        """Forget the first panes."""
        self._counts.drop(self._cells.drop(panes))

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        self._cells.select(live)

    def sums(self, windows: Windows) -> Ints:
        """Per answer row: all that was lost in the panes of its window."""
        if not len(windows.present):
            return np.empty(0, np.int64)
        low, high = int(windows.first.min()), int(windows.last.max())
        panes, order, starts = self._cells.by_group(low, high, windows.groups)
        sums = np.concatenate([[0], np.cumsum(self._counts.rows[order])])
        keys = np.repeat(np.arange(windows.groups), np.diff(starts)) * (high + 1) + panes
        group = windows.present.astype(np.int64) * (high + 1)
        window = np.repeat(np.arange(len(windows.first)), np.diff(windows.offsets))
        begin, end = (np.searchsorted(keys, group + edge[window]) for edge in (windows.first, windows.last))
        return np.asarray(sums[end] - sums[begin])

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"counts": self._counts.rows} | prefixed("cells", self._cells.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._counts.load(numpy_of(arrays["counts"]))
        self._cells.restore(within("cells", arrays))
