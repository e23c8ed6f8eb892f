"""The dense layout: a matrix of panes and groups per component, one synopsis each.

Best when most groups are in most panes: a lookup walks along rows. Space O(panes · groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.aggregates import Component
from windrow.aggregates.count import CountRows
from windrow.aggregates.user import UserComponent
from windrow.kernels.accumulate import count_cells, count_slots
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.memory import pooled
from windrow.kernels.within import list_within
from windrow.synopses.chooser import Choice, better, choose, forced, measured
from windrow.synopses.combining import Combining
from windrow.synopses.layout import Layout, Within
from windrow.synopses.matrix import spare
from windrow.synopses.open_panes import FEWEST_SLOTS, Accumulators
from windrow.synopses.registry import converted, synopsis, user_choice
from windrow.synopses.running import Running
from windrow.synopses.scratch import scratch
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.synopsis import Synopsis
from windrow.synopses.workload import Expected

FEWEST_GROUPS = 8
FADING = 8
"""What was seen counts half when so many times the panes of the longest window have come."""


class Tracked:
    """One component: its accumulators of open panes and its synopsis of closed ones."""

    def __init__(self, component: Component, kind: str | None, slots: int, stride: int) -> None:
        self.component = component
        self.open = Accumulators(component, slots, stride)
        self.closed: Synopsis = synopsis(component, kind, stride)
        self.free = False
        """Whether the synopsis may be changed for a better one."""
        self.expected = Expected()

    @property
    def row_bytes(self) -> int:
        """Of one row of groups."""
        return int(self.open.data[:, 0].nbytes)

    @property
    def choosable(self) -> Combining | None:
        """The synopsis, if it may be changed for a better one."""
        return self.closed if self.free and isinstance(self.closed, Combining) else None

    def convert(self, name: str) -> None:
        """Keep the same panes in another synopsis."""
        if name != self.closed.name:
            self.closed = converted(self.closed, name, self.expected)


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
        one.free = synopsis is None
        if len(self.edges):
            nothing = Accumulators(component, 1, self._stride).data
            one.closed.update(self.edges, nothing, np.zeros(len(self.edges), np.int64))
        self.tracked.append(one)
        return len(self.tracked) - 1

    def track_rows(self, component: Component) -> int:
        """A copy of the row count."""
        one = Tracked(component, Running.name, self._slots, self._stride)
        one.closed = self.counts.twin(component)
        one.free = True
        one.open.data[:] = self.tracked[0].open.data
        self.tracked.append(one)
        return len(self.tracked) - 1

    def expect(self, number: int, expected: Expected) -> None:
        """Before anything was looked up, choose anew; later only prepare, and let what is measured decide."""
        one = self.tracked[number]
        one.expected = expected
        kept = one.choosable
        if kept is not None and not kept.seen.windows:
            one.convert(choose(one.component, expected, one.row_bytes).name)
        one.closed.prepare(expected.lengths)

    def force(self, number: int, synopsis: str | None) -> None:
        """The panes move to it at once."""
        one = self.tracked[number]
        if synopsis is not None:
            one.free = False
            one.convert(synopsis)
        elif not one.free:
            one.free = True
            one.convert(choose(one.component, one.expected, one.row_bytes).name)

    def reconsider(self) -> None:
        """Change a synopsis whose lookups would have cost less elsewhere; old lookups fade."""
        for one in self.tracked:
            kept = one.choosable
            if kept is None:
                continue
            name = better(kept.name, one.expected, kept.seen, one.row_bytes, len(kept))
            one.convert(name)
            if name == kept.name and kept.seen.panes > FADING * len(kept) + 1024:
                kept.seen.fade()

    def explain(self, number: int) -> Choice:
        """From what was expected, or measured."""
        one = self.tracked[number]
        if isinstance(one.component, UserComponent):
            return user_choice(one.component)
        kept, name = one.choosable, one.closed.name
        if kept is None:
            return choose(one.component, one.expected) if name == Running.name else forced(name)
        if kept.seen.windows:
            return Choice(name, measured(one.component, one.expected, kept.seen))
        return Choice(name, choose(one.component, one.expected, one.row_bytes).reason)

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

    def within(self, number: int, first: Ints, last: Ints, groups: int, low: Ints, high: Ints) -> Within:
        """Decided on the prefix sums, where there are some."""
        closed = self.tracked[number].closed
        if not isinstance(closed, Running):
            return super().within(number, first, last, groups, low, high)
        offsets = np.zeros(len(first) + 1, np.int64)
        present: Codes = np.empty(2 * groups + 1, np.int32)
        done = 0
        while True:
            where = (closed.prefixes, self.counts.prefixes, first, last, groups, low, high)
            done = list_within(*where, done, offsets, present)
            if done == len(first):
                return offsets, present[: offsets[-1]], None
            present = np.concatenate([present, np.empty(len(present) + groups, np.int32)])

    def running(self, number: int) -> bool:
        """Whether a component has prefix sums."""
        return isinstance(self.tracked[number].closed, Running)

    def partials_of(self, number: int, pane: int, groups: int) -> tuple[Codes, Ints]:
        """The groups that have something in one closed pane, and their extremes or sums: -1 for one that is too big."""
        closed = self.tracked[number].closed
        if not isinstance(closed, Running):
            rows = self.counts.prefixes[pane + 1, 0, :groups] - self.counts.prefixes[pane, 0, :groups]
            gids = np.flatnonzero(rows).astype(np.int32)
            return gids, closed.partials(pane, gids)[0]
        words = closed.prefixes[pane + 1, :, :groups] - closed.prefixes[pane, :, :groups]
        gids = np.flatnonzero(words.any(axis=0)).astype(np.int32)
        if len(words) == 1:
            return gids, words[0, gids]
        rest = words[0, gids]
        top = words[1, gids] + (rest >> 32)
        total = (top << 32) | (rest & 0xFFFFFFFF)
        return gids, np.where((top >> 31) == 0, total, -1)

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
            metas.append(meta | {"free": one.free, "expected": one.expected.numbers()})
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
            one.free, one.expected = closed["free"], Expected.of(closed["expected"])
            one.closed.restore(closed, within(f"{i}.closed", arrays))
            shape = (len(component.dtypes), open_panes, groups)
            one.open.data[:, :open_panes, :groups] = arrays[f"{i}.open"].reshape(shape)
            self.tracked.append(one)
