"""A share group: all periodic queries with the same stream, predicate and grouping (thesis 8.3), over one set of panes.

One pass over a batch fills the open panes of every component; a closed pane goes to the synopses; a query costs its
lookups only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.columns import validity
from windrow.aggregates.count import Count, CountRows
from windrow.kernels.accumulate import count_cells, count_slots
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.groups import Groups
from windrow.synopses.matrix import spare
from windrow.synopses.open_panes import FEWEST_SLOTS, Accumulators, OpenPanes
from windrow.synopses.registry import synopsis
from windrow.synopses.running import Running
from windrow.synopses.scratch import scratch
from windrow.synopses.snapshot import numpy_of, pack, prefixed, unpack, within
from windrow.synopses.synopsis import Synopsis
from windrow.windows.grid import Grid

MAX_CELLS = (1 << 31) - 1


@dataclass(frozen=True)
class ComponentSpec:
    """A component on a value column (None for the row count), in a synopsis of the given type (None: the best)."""

    component: Component
    column: int | None = None
    synopsis: str | None = None


@dataclass(frozen=True)
class Lookup:
    """Answers of several windows, flat, ordered by window and then by group."""

    offsets: Ints
    """Rows offsets[i]..offsets[i+1]-1 belong to window i."""
    group: Codes
    """The gid of each row; valid until the next `expire`, which may renumber groups."""
    words: tuple[tuple[NDArray[Any], ...], ...]
    """The typed words of each component asked for."""

    @cached_property
    def window(self) -> Codes:
        """The index of the window of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    def __len__(self) -> int:
        return int(self.offsets[-1])


class _Tracked:
    """One component in use: its accumulators of open panes and its synopsis of closed ones."""

    def __init__(self, component: Component, kind: str | None, slots: int, stride: int) -> None:
        self.component = component
        self.open = Accumulators(component, slots, stride)
        self.closed: Synopsis = synopsis(component, kind, stride)


class ShareGroup:
    """Pane partials of several components for the groups of one GROUP BY; see the methods for the order of calls."""

    def __init__(self, key_types: Sequence[pa.DataType], components: Sequence[ComponentSpec], grid: Grid) -> None:
        self.dictionary = Groups(key_types)
        self._open = OpenPanes(grid)
        self._slots = FEWEST_SLOTS
        self._stride = 8 if key_types else 1
        self._closed_until: int | None = None
        self._expired = 0
        self._rows = _Tracked(CountRows(), Running.name, self._slots, self._stride)
        self._specs: list[ComponentSpec] = []
        # None stands for the row count: COUNT(x) is the row count until the first NULL comes.
        self._tracked: list[_Tracked | None] = []
        self.add_components(components)

    # -- what is kept ---------------------------------------------------------------------------------------------

    @property
    def specs(self) -> tuple[ComponentSpec, ...]:
        """The components in use; their positions are what `lookup` takes."""
        return tuple(self._specs)

    @property
    def groups(self) -> int:
        """How many groups are known."""
        return len(self.dictionary)

    @property
    def panes(self) -> int:
        """How many panes are closed and not expired."""
        return len(self._rows.closed)

    @property
    def closed_edges(self) -> Ints:
        """The upper edges of the closed panes, ascending."""
        return self._rows.closed.edges

    @property
    def grid(self) -> Grid:
        """The edges for rows that come from now on."""
        return self._open.grid

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        tracked = sum(one.open.data.nbytes + one.closed.nbytes for one in self._all())
        return self.dictionary.nbytes + self._open.nbytes + tracked

    def add_components(self, specs: Sequence[ComponentSpec]) -> list[int]:
        """The position of each component, which is added unless it is there; it knows only rows from now on."""
        for spec in specs:
            if spec not in self._specs:
                self._specs.append(spec)
                self._tracked.append(None if self._is_row_count(spec) else self._track(spec))
        return [self._specs.index(spec) for spec in specs]

    def set_grid(self, grid: Grid) -> None:
        """The edges for rows that come from now on; panes that are open or closed stay as they are."""
        self._open.grid = grid

    def _is_row_count(self, spec: ComponentSpec) -> bool:
        return isinstance(spec.component, Count) and spec.synopsis is None

    def _track(self, spec: ComponentSpec) -> _Tracked:
        tracked = _Tracked(spec.component, spec.synopsis, self._slots, self._stride)
        panes = self._rows.closed.edges
        if len(panes):
            # Panes from before hold nothing of this component.
            nothing = Accumulators(spec.component, 1, self._stride).data
            tracked.closed.update(panes, nothing, np.zeros(len(panes), np.int64))
        return tracked

    def _all(self) -> list[_Tracked]:
        return [self._rows, *(one for one in self._tracked if one is not None)]

    # -- rows in --------------------------------------------------------------------------------------------------

    def insert(self, ts: Ints, keys: Sequence[pa.Array], values: Sequence[pa.Array | None]) -> None:
        """Accumulate one batch into the open panes: rows in any order, none at or below the last close."""
        if not len(ts):
            return
        opened = self._open.count
        slots = self._open.assign(ts)
        fresh = self._open.edges[opened:]
        if self._closed_until is not None and len(fresh) and int(fresh.min()) <= self._closed_until:
            self._open.replace(self._open.edges[:opened].copy())
            raise ValueError(f"rows at or before {self._closed_until}, where panes are closed already")
        gids = self.dictionary.encode(keys) if keys else None
        self._make_room()
        counts = self._rows.open.words[0]
        if gids is None:
            cells = slots
            count_slots(slots, counts)
        else:
            cells = scratch("cells", len(slots))
            count_cells(slots, gids, self._stride, cells, counts)
        self._accumulate(cells, values)

    def _accumulate(self, cells: Codes, values: Sequence[pa.Array | None]) -> None:
        """Scatter the value columns; NULLs are filtered once per column, and only when there are any."""
        filtered: dict[int, tuple[NDArray[np.bool_] | None, Codes]] = {}
        for i, spec in enumerate(self._specs):
            if spec.column is None:
                continue
            column = values[spec.column]
            if column is None:
                continue
            if spec.column not in filtered:
                valid = validity(column)
                filtered[spec.column] = (valid, cells if valid is None else cells[valid])
            valid, chosen = filtered[spec.column]
            tracked = self._tracked[i]
            if tracked is None:
                if valid is None:
                    continue
                tracked = self._tracked[i] = self._split_count(spec, cells, valid)
                continue
            if isinstance(spec.component, Count):
                tracked.component.accumulate(tracked.open.words, chosen, chosen)
                continue
            lifted = spec.component.lift(column)
            tracked.component.accumulate(tracked.open.words, chosen, lifted if valid is None else lifted[valid])

    def _split_count(self, spec: ComponentSpec, cells: Codes, valid: NDArray[np.bool_]) -> _Tracked:
        """The first NULLs came: COUNT(x) is what the row count is, less these."""
        tracked = self._track(spec)
        tracked.closed = self._rows.closed.twin(spec.component)
        tracked.open.data[:] = self._rows.open.data
        np.subtract.at(tracked.open.words[0], cells[~valid], 1)
        return tracked

    def _make_room(self) -> None:
        """Capacities for the panes and groups known now."""
        slots, stride = self._slots, self._stride
        if self._open.count > slots:
            slots = 2 * self._open.count
        if self.groups > stride:
            stride = spare(self.groups)
        if (slots, stride) == (self._slots, self._stride):
            return
        if slots * stride > MAX_CELLS:
            raise MemoryError(f"{slots} open panes times {stride} groups are too many cells for one share group")
        for one in self._all():
            one.open.resize(slots, stride, min(self._slots, self._open.count))
            if stride != self._stride:
                one.closed.reserve(stride)
        self._slots, self._stride = slots, stride

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """Move panes with upper edge <= watermark into the synopses, in order."""
        edges = self._open.edges
        order = np.argsort(edges)
        due = int(np.searchsorted(edges[order], watermark, side="right"))
        if self._closed_until is None or watermark > self._closed_until:
            self._closed_until = int(watermark)
        if not due:
            return
        closing, staying = order[:due], order[due:]
        panes = edges[closing]
        for one in self._all():
            one.closed.update(panes, one.open.data, closing)
            one.open.keep(staying, len(edges))
        self._open.replace(edges[staying])
        if self._slots > 4 * len(staying) + 1024:
            self._slots = len(staying) + FEWEST_SLOTS
            for one in self._all():
                one.open.resize(self._slots, self._stride, len(staying))

    def expire(self, edge: int) -> None:
        """Forget panes with upper edge <= edge, and now and then the groups that are in no pane any more."""
        gone = [one.closed.expire(edge) for one in self._all()]
        self._expired += gone[0]
        # Looking for dead groups costs O(groups): do it a few times per window length.
        if gone[0] and 4 * self._expired > self.panes:
            self._expired = 0
            self.purge(spare_dead=self.groups // 2)

    def fold(self, edge: int) -> None:
        """Merge panes with upper edge <= edge into one: for share groups whose windows have no left edge before it."""
        for one in self._all():
            one.closed.fold(edge)

    def purge(self, spare_dead: int = 0) -> None:
        """Forget groups that are in no pane, if they are more than `spare_dead`; renumbers the others."""
        if not self.dictionary.key_types:
            return
        closed = self._rows.closed
        assert isinstance(closed, Running)
        rows = closed.live(self.groups) + self._rows.open.data[0, : self._open.count, : self.groups].sum(axis=0)
        live = np.flatnonzero(rows)
        if self.groups - len(live) <= spare_dead:
            return
        self.dictionary.compact(live)
        self._stride = max(8, spare(len(live)))
        for one in self._all():
            one.open.select(live, self._stride, self._open.count)
            one.closed.select(live, self._stride)

    # -- answers out ----------------------------------------------------------------------------------------------

    def lookup(self, starts: Any, ends: Any, components: Sequence[int]) -> Lookup:
        """The partials of the windows (start, end] over closed panes, for the groups that have rows in them.

        Without key columns every window gives one row. About 3 ns per row and word for subtractable components.
        """
        closed = self._rows.closed
        assert isinstance(closed, Running)
        first, last = closed.range_of(np.asarray(starts, np.int64), np.asarray(ends, np.int64))
        groups = self.groups
        if self.dictionary.key_types:
            offsets = closed.count_present(first, last, groups)
            present = closed.list_present(first, last, groups, offsets)
        else:
            offsets = np.arange(len(first) + 1)
            present = np.zeros(len(first), np.int32)
        words = tuple(self._words(i, first, last, offsets, present) for i in components)
        return Lookup(offsets, present, words)

    def _words(self, position: int, first: Ints, last: Ints, offsets: Ints, present: Codes) -> tuple[NDArray[Any], ...]:
        tracked = self._tracked[position] or self._rows
        out = np.empty((len(tracked.component.dtypes), int(offsets[-1])), np.int64)
        tracked.closed.answer(first, last, self.groups, offsets, present, out)
        return tracked.component.typed(out)

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything kept, as one Arrow IPC stream; restore it into a share group built with the same specs."""
        meta: dict[str, Any] = {
            "closed_until": self._closed_until,
            "groups": self.groups,
            "grid": [list(one) for one in self.grid.progressions],
            "tracked": [],
        }
        arrays: dict[str, Any] = {"open_edges": self._open.edges}
        arrays |= prefixed("keys", self.dictionary.snapshot())
        for i, one in enumerate([self._rows, *self._tracked]):
            if one is None:
                meta["tracked"].append(None)
                continue
            one.closed.groups = self.groups
            closed, partials = one.closed.snapshot()
            meta["tracked"].append(closed)
            arrays |= prefixed(f"closed.{i}", partials)
            arrays[f"open.{i}"] = one.open.data[:, : self._open.count, : self.groups]
        return pack(meta, arrays)

    def restore(self, data: bytes) -> None:
        """Become what `snapshot` wrote."""
        meta, arrays = unpack(data)
        if len(meta["tracked"]) != len(self._specs) + 1:
            raise ValueError(
                f"the snapshot has {len(meta['tracked']) - 1} components, this share group has {len(self._specs)}"
            )
        self._closed_until = meta["closed_until"]
        self._expired = 0
        self._open.grid = Grid(tuple((step, phase) for step, phase in meta["grid"]))
        self._open.replace(numpy_of(arrays["open_edges"]))
        self.dictionary.restore(within("keys", arrays))
        groups, panes = meta["groups"], self._open.count
        self._stride = max(self._stride, spare(groups))
        self._slots = max(self._slots, panes)
        blank = ComponentSpec(CountRows(), None, Running.name)
        for i, (spec, closed) in enumerate(zip([blank, *self._specs], meta["tracked"], strict=True)):
            one = None
            if closed is not None:
                one = _Tracked(spec.component, closed["synopsis"], self._slots, self._stride)
                stored = {name: numpy_of(array) for name, array in within(f"closed.{i}", arrays).items()}
                one.closed.restore(closed, stored)
                shape = (len(one.component.dtypes), panes, groups)
                one.open.data[:, :panes, :groups] = numpy_of(arrays[f"open.{i}"]).reshape(shape)
            if i == 0:
                assert one is not None
                self._rows = one
            else:
                self._tracked[i - 1] = one
