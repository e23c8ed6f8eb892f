"""The panes that still take rows: one accumulator per pane, group and word.

Slots are given to panes as they appear, in any order; `take` gives panes back in order of their upper edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.aggregates import Component
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.kernels.panes import assign_panes, index_panes
from windrow.synopses.scratch import scratch
from windrow.windows.grid import Grid

FEWEST_SLOTS = 4


@dataclass(frozen=True)
class AssignedPanes:
    """The panes of one batch on one grid: their upper edges, and which of them each row is in."""

    edges: Ints
    slots: Codes

    @classmethod
    def of(cls, grid: Grid, ts: Ints) -> AssignedPanes:
        """Found once, for all share groups that use the grid."""
        panes = OpenPanes(grid)
        slots = np.array(panes.assign(ts))
        return cls(panes.edges, slots)


class OpenPanes:
    """Upper edges of open panes by slot, and the hash table that finds them."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.count = 0
        self._edges: Ints = np.empty(8, np.int64)
        self._index()

    @property
    def grid(self) -> Grid:
        """The edges for rows that come from now on."""
        return self._grid

    @grid.setter
    def grid(self, grid: Grid) -> None:
        self._grid = grid
        self._steps = np.array([step for step, _ in grid.progressions], np.int64)
        self._phases = np.array([phase for _, phase in grid.progressions], np.int64)

    @property
    def edges(self) -> Ints:
        """Upper edges, by slot."""
        return self._edges[: self.count]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._edges.nbytes + self._table.nbytes)

    def assign(self, ts: Ints) -> Codes:
        """The slot of each row's pane (in scratch memory); new panes get the next slots."""
        ts = frozen(ts)
        slots = scratch("slots", len(ts))
        done = 0
        while True:
            done, self.count = assign_panes(
                ts, done, self._steps, self._phases, self._edges, self.count, self._table, self._shift, slots
            )
            if done == len(ts):
                return slots
            self._edges = np.concatenate([self.edges, np.empty(len(self._edges), np.int64)])
            self._index()

    def adopt(self, assigned: AssignedPanes) -> Codes:
        """The slots of rows whose panes were found for another share group with the same grid."""
        own = np.array(self.assign(assigned.edges))
        if np.array_equal(own, np.arange(len(own))):
            return assigned.slots
        return np.take(own, assigned.slots, out=scratch("slots", len(assigned.slots)), mode="clip")

    def replace(self, edges: Ints) -> None:
        """Forget everything; edge k gets slot k."""
        self.count = len(edges)
        self._edges = np.empty(max(8, 2 * self.count), np.int64)
        self._edges[: self.count] = edges
        self._index()

    def _index(self) -> None:
        size = 1 << (2 * len(self._edges) - 1).bit_length()
        self._table = np.full(size, -1, np.int32)
        self._shift = 64 - (size.bit_length() - 1)
        index_panes(self._edges, self.count, self._table, self._shift)


class Accumulators:
    """The words of one component for every (slot, group): [words, slots, stride], identity where nothing came."""

    def __init__(self, component: Component, slots: int, stride: int) -> None:
        self.component = component
        self._identity = component.identity
        self.data = self._blank(slots, stride)

    @property
    def words(self) -> list[Ints]:
        """Flat views, one per word; cell = slot * stride + gid."""
        return [word.reshape(-1) for word in self.data]

    def resize(self, slots: int, stride: int, used: int) -> None:
        """Other capacities; the first `used` slots and the groups that fit are kept."""
        old, width = self.data, min(stride, self.data.shape[2])
        self.data = self._blank(slots, stride)
        self.data[:, :used, :width] = old[:, :used, :width]

    def keep(self, slots: Ints, used: int) -> None:
        """Slot slots[k] becomes slot k; the other used ones are blank again."""
        kept = self.data[:, slots]
        self.data[:, :used] = self._identity[:, None, None]
        self.data[:, : len(slots)] = kept

    def select(self, groups: Ints, stride: int, used: int) -> None:
        """Keep these groups only, renumbered in this order."""
        old = self.data
        self.data = self._blank(old.shape[1], stride)
        self.data[:, :used, : len(groups)] = old[:, :used][:, :, groups]

    def copy(self) -> Accumulators:
        """An independent copy."""
        twin = Accumulators(self.component, 0, 0)
        twin.data = self.data.copy()
        return twin

    def _blank(self, slots: int, stride: int) -> Ints:
        data = np.empty((len(self._identity), slots, stride), np.int64)
        data[:] = self._identity[:, None, None]
        return data
