"""The dense layout: a matrix of panes and groups per component, one synopsis each.

Best when most groups are in most panes: a lookup walks along rows. Space O(panes · groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.aggregates import Component
from windrow.aggregates.count import CountRows
from windrow.kernels.accumulate import count_cells, count_slots
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.memory import pooled
from windrow.synopses.layout import Layout
from windrow.synopses.matrix import spare
from windrow.synopses.open_panes import FEWEST_SLOTS, Accumulators
from windrow.synopses.registry import synopsis
from windrow.synopses.running import Running
from windrow.synopses.scratch import scratch
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.synopsis import Synopsis

FEWEST_GROUPS = 8


class Tracked:
    """One component: its accumulators of open panes and its synopsis of closed ones."""

    def __init__(self, component: Component, kind: str | None, slots: int, stride: int) -> None:
        self.component = component
        self.open = Accumulators(component, slots, stride)
        self.closed: Synopsis = synopsis(component, kind, stride)


class Dense(Layout):
    """Cell = slot * stride + gid."""

    name = "dense"

    def __init__(self, stride: int = FEWEST_GROUPS) -> None:
        self._slots = FEWEST_SLOTS
        self._stride = stride
        self.tracked = [Tracked(CountRows(), Running.name, self._slots, stride)]

    @property
    def counts(self) -> Running:
        """The row count of closed panes."""
        closed = self.tracked[0].closed
        assert isinstance(closed, Running)
        return closed

    @property
    def edges(self) -> Ints:
        """The upper edges of closed panes."""
        return self.counts.edges

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.open.data.nbytes + one.closed.nbytes for one in self.tracked)

    def track(self, component: Component, synopsis: str | None) -> int:
        """Panes from before hold nothing of this component."""
        one = Tracked(component, synopsis, self._slots, self._stride)
        if len(self.edges):
            nothing = Accumulators(component, 1, self._stride).data
            one.closed.update(self.edges, nothing, np.zeros(len(self.edges), np.int64))
        self.tracked.append(one)
        return len(self.tracked) - 1

    def track_rows(self, component: Component) -> int:
        """A copy of the row count."""
        one = Tracked(component, Running.name, self._slots, self._stride)
        one.closed = self.counts.twin(component)
        one.open.data[:] = self.tracked[0].open.data
        self.tracked.append(one)
        return len(self.tracked) - 1

    def keep(self, numbers: Sequence[int]) -> None:
        """The words of the others go with their `Tracked`."""
        self.tracked = [self.tracked[number] for number in numbers]

    def capacity(self, open_panes: int, groups: int) -> tuple[int, int]:
        """Slots and stride for so many panes and groups."""
        slots = self._slots if open_panes <= self._slots else 2 * open_panes
        return slots, self._stride if groups <= self._stride else spare(groups)

    def scatter(self, slots: Codes, gids: Codes | None, open_panes: int, groups: int) -> Codes:
        """One multiplication per row."""
        room = self.capacity(open_panes, groups)
        if room != (self._slots, self._stride):
            for one in self.tracked:
                one.open.resize(*room, min(self._slots, open_panes))
                if room[1] != self._stride:
                    one.closed.reserve(room[1])
            self._slots, self._stride = room
        counts = self.tracked[0].open.words[0]
        if gids is None:
            count_slots(slots, counts)
            return slots
        cells = scratch("cells", len(slots))
        count_cells(slots, gids, self._stride, cells, counts)
        return cells

    def words(self, number: int) -> list[Ints]:
        """The flat accumulators of a component, by cell."""
        return self.tracked[number].open.words

    def open_cells(self, open_panes: int, groups: int) -> tuple[Ints, Ints, Ints]:
        """Where the row count is not zero."""
        slots, gids = np.nonzero(self.tracked[0].open.data[0, :open_panes, :groups])
        return slots, gids, slots * self._stride + gids

    def close(self, edges: Ints, closing: Ints, staying: Ints) -> None:
        """Rows of accumulators become rows of synopses."""
        for one in self.tracked:
            one.closed.update(edges, one.open.data, closing)
            one.open.keep(staying, len(closing) + len(staying))
        if self._slots > 4 * len(staying) + 1024:
            self._slots = len(staying) + FEWEST_SLOTS
            for one in self.tracked:
                one.open.resize(self._slots, self._stride, len(staying))

    def expire(self, edge: int) -> int:
        """In every synopsis."""
        return [one.closed.expire(edge) for one in self.tracked][0]  # noqa: RUF015

    def rows(self, open_panes: int, groups: int) -> Ints:
        """The rows of each group in all panes."""
        waiting = self.tracked[0].open.data[0, :open_panes, :groups].sum(axis=0)
        return np.asarray(self.counts.live(groups) + waiting)

    def select(self, live: Ints, open_panes: int) -> None:
        """Gather the columns."""
        self._stride = max(FEWEST_GROUPS, spare(len(live)))
        for one in self.tracked:
            one.open.select(live, self._stride, open_panes)
            one.closed.select(live, self._stride)

    def present(self, first: Ints, last: Ints, groups: int) -> tuple[Ints, Codes]:
        """Where the row count is not zero; no list when that is everywhere."""
        offsets = self.counts.count_present(first, last, groups)
        if offsets[-1] == len(first) * groups:
            return offsets, np.empty(0, np.int32)
        return offsets, self.counts.list_present(first, last, groups, offsets)

    def answer(self, number: int, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes) -> Ints:
        """From the synopsis of the component."""
        one = self.tracked[number]
        out = pooled((len(one.component.dtypes), int(offsets[-1])), np.int64)
        one.closed.answer(first, last, groups, offsets, present, out)
        return out

    def stored(self, number: int) -> list[Ints]:
        """Of open and of closed panes."""
        one = self.tracked[number]
        return [one.open.data, one.closed.words]

    def snapshot(self, open_panes: int, groups: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Each synopsis, and each accumulator."""
        metas: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {}
        for i, one in enumerate(self.tracked):
            one.closed.groups = groups
            meta, partials = one.closed.snapshot()
            metas.append(meta)
            arrays |= prefixed(f"{i}.closed", partials)
            arrays[f"{i}.open"] = one.open.data[:, :open_panes, :groups]
        return {"groups": groups, "capacity": [self._slots, self._stride], "tracked": metas}, arrays

    def restore(
        self, meta: dict[str, Any], arrays: dict[str, Any], components: Sequence[Component], open_panes: int
    ) -> None:
        """Each synopsis, and each accumulator."""
        groups = meta["groups"]
        # The room decides when the share group goes over to the sparse layout, and so the last bits of float sums.
        self._slots, self._stride = meta["capacity"]
        self.tracked = []
        for i, (component, closed) in enumerate(zip(components, meta["tracked"], strict=True)):
            one = Tracked(component, closed["synopsis"], self._slots, self._stride)
            one.closed.restore(closed, within(f"{i}.closed", arrays))
            shape = (len(component.dtypes), open_panes, groups)
            one.open.data[:, :open_panes, :groups] = arrays[f"{i}.open"].reshape(shape)
            self.tracked.append(one)
