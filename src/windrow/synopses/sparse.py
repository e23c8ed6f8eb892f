"""The sparse layout: only the cells (pane, group) that have rows, in order of pane.

Best when a group is in few of the panes, as with a million keys that come and go. Space O(cells). A lookup of
subtractable components pays for the cells that enter and leave its windows; of others, for the cells in them, which
here are few per answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.aggregates import Component, Subtractable
from windrow.aggregates.count import CountRows
from windrow.aggregates.user import UserComponent
from windrow.kernels import cells as kernels
from windrow.kernels.accumulate import count_slots
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.memory import pooled
from windrow.synopses.basic_interval import BasicInterval
from windrow.synopses.chooser import Choice
from windrow.synopses.codes import IntCodes
from windrow.synopses.dense import Dense
from windrow.synopses.layout import Layout
from windrow.synopses.open_panes import Accumulators
from windrow.synopses.queue import Queue
from windrow.synopses.running import Running
from windrow.synopses.user import scan
from windrow.synopses.workload import Expected

LOW = 0xFFFFFFFF


class Tracked:
    """One component: accumulators [words, 1, cells] of open panes, a queue [cells, words, 1] of closed ones."""

    def __init__(self, component: Component, synopsis: str | None, capacity: int) -> None:
        self.component = component
        self.subtract = isinstance(component, Subtractable) and synopsis in (None, Running.name)
        self.open = Accumulators(component, 1, capacity)
        self.closed = Queue(np.int64, len(component.identity), 1)


class Sparse(Layout):
    """Cells of open panes are found by hashing (slot, gid)."""

    name = "sparse"

    def __init__(self) -> None:
        self._edges: Ints = np.empty(0, np.int64)
        self._bounds: Ints = np.zeros(1, np.int64)
        self._gids = Queue(np.int64)
        self._open = IntCodes(direct=False)
        self._capacity = 64
        self.tracked = [Tracked(CountRows(), None, self._capacity)]

    @classmethod
    def of(cls, dense: Dense, open_panes: int, groups: int) -> Sparse:
        """The same partials as a dense layout."""
        made = cls()
        pane, gid = np.nonzero(np.diff(dense.counts.table(groups), axis=0))
        made._edges = dense.edges.copy()
        made._bounds = np.searchsorted(pane, np.arange(len(made._edges) + 1)).astype(np.int64)
        made._gids.push(gid)
        slot, member = np.nonzero(dense.tracked[0].open.data[0, :open_panes, :groups])
        made._open.replace((slot << 32) | member)
        made._capacity = max(made._capacity, len(slot))
        made.tracked = []
        for one in dense.tracked:
            new = Tracked(one.component, one.closed.name, made._capacity)
            new.open.data[:, 0, : len(slot)] = one.open.data[:, slot, member]
            made._push(new, one.closed.partials(pane, gid))
            made.tracked.append(new)
        return made

    @property
    def edges(self) -> Ints:
        """The upper edges of closed panes."""
        return self._edges

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        tracked = sum(one.open.data.nbytes + one.closed.nbytes for one in self.tracked)
        return tracked + self._gids.nbytes + self._open.nbytes + int(self._edges.nbytes + self._bounds.nbytes)

    def track(self, component: Component, synopsis: str | None) -> int:
        """Cells from before hold nothing of this component."""
        one = Tracked(component, synopsis, self._capacity)
        self._push(one, np.repeat(component.identity[:, None], len(self._gids), axis=1))
        self.tracked.append(one)
        return len(self.tracked) - 1

    def track_rows(self, component: Component) -> int:
        """A copy of the row count."""
        one = Tracked(component, None, self._capacity)
        one.open.data[:] = self.tracked[0].open.data
        one.closed = self.tracked[0].closed.copied()
        self.tracked.append(one)
        return len(self.tracked) - 1

    def expect(self, number: int, expected: Expected) -> None:
        """There is only one way here."""

    def force(self, number: int, synopsis: str | None) -> None:
        """Cells stay cells; only what is in a running synopsis is subtracted."""
        one = self.tracked[number]
        one.subtract = isinstance(one.component, Subtractable) and synopsis in (None, Running.name)

    def reconsider(self) -> None:
        """There is only one way here."""

    def explain(self, number: int) -> Choice:
        """Cells, whatever synopsis was asked for."""
        one = self.tracked[number]
        how = "sums slide over them" if one.subtract else "those of a window are combined"
        return Choice("sparse", f"few groups are in a pane: only the cells that have rows are kept, {how}")

    def keep(self, numbers: Sequence[int]) -> None:
        """The words of the others go with their `Tracked`."""
        self.tracked = [self.tracked[number] for number in numbers]

    def scatter(self, slots: Codes, gids: Codes | None, open_panes: int, groups: int) -> Codes:
        """One probe of the hash table per row."""
        assert gids is not None, "without keys there is one group, which is dense"
        keys = np.left_shift(slots, 32, dtype=np.int64)
        np.bitwise_or(keys, gids, out=keys)
        cells = self._open.encode_ints(keys, "cells")
        if len(self._open) > self._capacity:
            self._capacity = 2 * len(self._open)
            for one in self.tracked:
                one.open.resize(1, self._capacity, 1)
        count_slots(cells, self.words(0)[0])
        return cells

    def words(self, number: int) -> list[Ints]:
        """The flat accumulators of a component, by cell."""
        return self.tracked[number].open.words

    def open_cells(self, open_panes: int, groups: int) -> tuple[Ints, Ints, Ints]:
        """All of them."""
        keys = self._open.uniques
        return keys >> 32, keys & LOW, np.arange(len(keys))

    def close(self, edges: Ints, closing: Ints, staying: Ints) -> None:
        """Sort the cells of closing panes by pane, and append them."""
        rank = np.empty(len(closing) + len(staying), np.int64)
        rank[closing] = np.arange(len(closing))
        rank[staying] = len(closing) + np.arange(len(staying))
        keys = self._open.uniques
        ends, order = np.empty(len(rank), np.int64), np.empty(len(keys), np.int64)
        kernels.order_cells(keys, rank, ends, order)
        closed_ends = ends[: len(closing)]
        done = int(closed_ends[-1])
        moved, kept = order[:done], order[done:]
        self._gids.push(keys[moved] & LOW)
        self._capacity = max(64, 2 * len(kept), len(order) if 2 * len(order) > self._capacity else 0)
        for one in self.tracked:
            old = one.open.data
            self._push(one, old[:, 0, moved])
            one.open = Accumulators(one.component, 1, self._capacity)
            one.open.data[:, 0, : len(kept)] = old[:, 0, kept]
        self._open.replace(((rank[keys[kept] >> 32] - len(closing)) << 32) | (keys[kept] & LOW))
        self._edges = np.concatenate([self._edges, edges])
        self._bounds = np.concatenate([self._bounds, self._bounds[-1] + closed_ends])

    def expire(self, edge: int) -> int:
        """Drop the first cells."""
        gone = int(np.searchsorted(self._edges, edge, side="right"))
        if gone:
            cells = int(self._bounds[gone])
            self._gids.drop(cells)
            for one in self.tracked:
                one.closed.drop(cells)
            self._edges = self._edges[gone:].copy()
            self._bounds = self._bounds[gone:] - cells
        return gone

    def rows(self, open_panes: int, groups: int) -> Ints:
        """The cells of each group in all panes."""
        closed = np.bincount(self._gids.rows, minlength=groups)
        return np.asarray(closed + np.bincount(self._open.uniques & LOW, minlength=groups))

    def select(self, live: Ints, open_panes: int) -> None:
        """Renumber the groups of cells; the cells stay, since only groups without cells may go."""
        new = np.zeros(int(live[-1]) + 1 if len(live) else 1, np.int64)
        new[live] = np.arange(len(live))
        gids = self._gids.rows
        gids[:] = new[gids]
        keys = self._open.uniques
        self._open.replace((keys & ~LOW) | new[keys & LOW])

    def present(self, first: Ints, last: Ints, groups: int) -> tuple[Ints, Codes]:
        """One pass over the cells that enter and leave."""
        most = np.minimum(self._bounds[last] - self._bounds[first], groups).sum()
        present = np.empty(int(most) + 1, np.int32)
        offsets = np.empty(len(first) + 1, np.int64)
        kernels.list_present_cells(self._bounds, self._gids.rows, first, last, groups, offsets, present)
        return offsets, present[: offsets[-1]]

    def answer(self, number: int, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes) -> Ints:
        """Sliding sums for what can be subtracted, a scan of the cells for the rest."""
        one = self.tracked[number]
        out = pooled((len(one.component.dtypes), int(offsets[-1])), np.int64)
        cells = one.closed.rows
        where = (self._bounds, self._gids.rows, cells, first, last, groups)
        if isinstance(one.component, UserComponent):
            scan(one.component, *where, offsets, present, out)
        elif one.subtract:
            kernels.slide_sums(*where, offsets, present, out)
        else:
            kernels.scan_cells(one.component.op, *where, one.component.identity, offsets, present, out)
        return out

    def stored(self, number: int) -> list[Ints]:
        """Of open and of closed panes."""
        one = self.tracked[number]
        return [one.open.data, one.closed.rows]

    def snapshot(self, open_panes: int, groups: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The cells of closed and of open panes."""
        arrays: dict[str, Any] = {"edges": self._edges, "bounds": self._bounds}
        arrays |= {"gids": self._gids.rows, "keys": self._open.uniques}
        for i, one in enumerate(self.tracked):
            arrays[f"{i}.closed"] = one.closed.rows
            arrays[f"{i}.open"] = one.open.data[:, 0, : len(self._open)]
        return {"subtract": [one.subtract for one in self.tracked]}, arrays

    def restore(
        self, meta: dict[str, Any], arrays: dict[str, Any], components: Sequence[Component], open_panes: int
    ) -> None:
        """The cells of closed and of open panes."""
        self._edges, self._bounds = arrays["edges"], arrays["bounds"]
        self._gids.load(arrays["gids"])
        self._open.replace(arrays["keys"])
        self._capacity = max(64, len(self._open))
        self.tracked = []
        for i, (component, subtract) in enumerate(zip(components, meta["subtract"], strict=True)):
            one = Tracked(component, None if subtract else BasicInterval.name, self._capacity)
            one.closed.load(arrays[f"{i}.closed"])
            one.open.data[:, 0, : len(self._open)] = arrays[f"{i}.open"].reshape(len(component.dtypes), -1)
            self.tracked.append(one)

    def _push(self, one: Tracked, words: Ints) -> None:
        """Append words [words, cells]."""
        one.closed.push(words.T[:, :, None])
