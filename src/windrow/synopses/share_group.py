"""A share group: all periodic queries with the same stream, predicate and grouping (thesis 8.3), over one set of panes.

One pass over a batch fills the open panes of every component; a closed pane goes to the synopses; a query costs its
lookups only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.kernels.jit import Ints
from windrow.synopses.candidate_search import Limits
from windrow.synopses.chooser import Choice
from windrow.synopses.collection import Windows
from windrow.synopses.components import COLLECTED, Components
from windrow.synopses.dense import FEWEST_GROUPS, Dense
from windrow.synopses.groups import Groups
from windrow.synopses.layout import Layout
from windrow.synopses.lookup import Lookup
from windrow.synopses.open_panes import AssignedPanes, OpenPanes
from windrow.synopses.partials import Partials
from windrow.synopses.placed import Placed
from windrow.synopses.searches import Search, Searches
from windrow.synopses.snapshot import numpy_of, pack, prefixed, unpack, within
from windrow.synopses.sparse import Sparse
from windrow.synopses.spec import ComponentSpec
from windrow.synopses.stores import Stores
from windrow.synopses.text_labels import TextLabels
from windrow.synopses.workload import Expected
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING

SMALL = 1 << 22
"""Up to so many cells (panes times groups) the dense layout is never given up."""
THIN = 8
"""Beyond it, the sparse layout is taken when there are this many cells for each row in the panes."""
MAX_CELLS = (1 << 31) - 1


class ShareGroup:
    """Pane partials of several components for the groups of one GROUP BY.

    insert … close(watermark) … lookup … expire(edge), again and again. `layout` forces "dense" or "sparse"; by
    default it is dense until that would waste memory.
    """

    def __init__(
        self,
        key_types: Sequence[pa.DataType],
        components: Sequence[ComponentSpec],
        grid: Grid,
        layout: str | None = None,
    ) -> None:
        self.dictionary = Groups(key_types)
        self._open = OpenPanes(grid)
        self._choose = layout is None and bool(key_types)
        self._layout: Layout = self._blank(layout)
        self._closed_until: int | None = None
        self._expired = 0
        self._ranks = TextLabels()
        self._stores = Stores()
        self._components = Components(self._ranks, self._stores)
        self._searches = Searches()
        self.add_components(components)

    # -- what is kept ---------------------------------------------------------------------------------------------

    @property
    def specs(self) -> tuple[ComponentSpec, ...]:
        """The components in use; their positions are what `lookup` takes."""
        return tuple(self._components.specs)

    @property
    def failures(self) -> dict[int, QueryError]:
        """By place: why a component could not take in some rows, so that its words are wrong since."""
        return self._components.failures

    @property
    def groups(self) -> int:
        """How many groups are known."""
        return len(self.dictionary)

    @property
    def panes(self) -> int:
        """How many panes are closed and not expired."""
        return len(self._layout.edges)

    @property
    def closed_edges(self) -> Ints:
        """The upper edges of the closed panes, ascending."""
        return self._layout.edges

    @property
    def newest_edge(self) -> int:
        """The greatest upper edge of all panes, open or closed; BEGINNING when there is none."""
        return int(max(np.max(self._open.edges, initial=BEGINNING), np.max(self.closed_edges, initial=BEGINNING)))

    @property
    def grid(self) -> Grid:
        """The edges for rows that come from now on."""
        return self._open.grid

    @property
    def layout(self) -> str:
        """dense or sparse."""
        return self._layout.name

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        parts = (self.dictionary, self._open, self._layout, self._ranks, self._stores, self._searches)
        return sum(part.nbytes for part in parts)

    def add_components(self, specs: Sequence[ComponentSpec]) -> list[int]:
        """The position of each component, which is added unless it is there; it knows only rows from now on."""
        return self._components.add(specs, self._layout)

    def take_back(self, count: int) -> None:
        """Forget the last so many components, which were lent a place: their collection stays with the others."""
        self._components.take_back(count)

    def keep_components(self, places: Sequence[int]) -> list[int]:
        """Free all components but these: places[k] becomes k.

        Gives the value columns that they use, in the order of first use: columns[k] becomes k, and `insert` takes these
        only from now on.
        """
        self._searches.clear()
        return self._components.keep(places, self._layout)

    def expect(self, expected: Sequence[Expected]) -> None:
        """The windows that will be looked up, by place: a hint for the choice of synopses; others are answered too."""
        self._components.expect(expected, self._layout)

    def force(self, synopses: Sequence[str | None]) -> None:
        """By place: the synopsis to keep a component in; None leaves that to its spec, or to the chooser."""
        self._components.force(synopses, self._layout)

    def explain(self, place: int) -> Choice:
        """How the component at this place is kept, and why."""
        return self._components.explain(place, self._layout)

    def set_grid(self, grid: Grid) -> None:
        """The edges for rows that come from now on; panes that are open or closed stay as they are."""
        self._open.grid = grid

    # -- rows in --------------------------------------------------------------------------------------------------

    def insert(
        self,
        ts: Ints,
        keys: Sequence[pa.Array],
        values: Sequence[pa.Array | None],
        panes: AssignedPanes | None = None,
    ) -> None:
        """Accumulate one batch into the open panes: rows in any order, none at or below the last close.

        `panes` are those of the same rows on the same grid, if somebody has found them already.
        """
        if len(ts):
            placed = self._scatter(ts, keys, panes)
            self._components.accumulate(placed, values, self._layout)

    def _scatter(self, ts: Ints, keys: Sequence[pa.Array], panes: AssignedPanes | None = None) -> Placed:
        """The open cell of each row, which is counted there, in a layout that may have changed for it."""
        opened = self._open.count
        slots = self._open.assign(ts) if panes is None else self._open.adopt(panes)
        fresh = self._open.edges[opened:]
        if self._closed_until is not None and len(fresh) and int(fresh.min()) <= self._closed_until:
            self._open.replace(self._open.edges[:opened].copy())
            raise ValueError(f"rows at or before {self._closed_until}, where panes are closed already")
        gids = self.dictionary.encode(keys) if keys else None
        if isinstance(self._layout, Dense):
            self._rethink(self._layout, len(ts))
        cells = self._layout.scatter(slots, gids, self._open.count, self.groups)
        if gids is not None and len(self._stores):
            gids = gids.copy()  # they may be in scratch memory, which strings of a value column use again
        return Placed(cells, slots, gids)

    def partials(self) -> Partials:
        """What is in the open panes, for `absorb` of another share group with the same specs and grid."""
        slots, gids, cells = self._layout.open_cells(self._open.count, self.groups)
        rows, words = self._components.partials(slots, gids, cells, self._layout)
        keys = self.dictionary.keys(gids) if self.dictionary.key_types else []
        return Partials(self._open.edges[slots], keys, rows, words)

    def absorb(self, part: Partials, positions: Sequence[int]) -> None:
        """Add partials of rows that were inserted elsewhere; their component i is the one at positions[i] here."""
        if len(part):
            # Each (pane, group) comes once, and is counted as one row here.
            placed = self._scatter(part.edges, part.keys)
            self._components.absorb(part, placed, positions, self._layout)

    def _rethink(self, dense: Dense, rows: int) -> None:
        """Go over to the sparse layout when few of the dense cells would have rows."""
        slots, stride = dense.capacity(self._open.count, self.groups)
        cells = max(slots, self._open.count + self.panes) * stride
        if cells > SMALL and self._choose:
            rows += int(dense.rows(self._open.count, self.groups).sum())
            if cells > THIN * rows:
                self._layout = Sparse.of(dense, self._open.count, self.groups)
                self._searches.clear()  # filters are over dense panes
        elif slots * stride > MAX_CELLS:
            raise MemoryError(f"{slots} open panes times {stride} groups are too many cells for the dense layout")

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, watermark: int) -> None:
        """Move panes with upper edge <= watermark into the synopses, in order."""
        self._layout.reconsider()
        edges = self._open.edges
        order = np.argsort(edges)
        due = int(np.searchsorted(edges[order], watermark, side="right"))
        if self._closed_until is None or watermark > self._closed_until:
            self._closed_until = int(watermark)
        if due:
            closing, staying = order[:due], order[due:]
            self._layout.close(edges[closing], closing, staying)
            self._stores.close(closing, staying)
            self._open.replace(edges[staying])

    @property
    def complete_until(self) -> int | None:
        """No row at or before this comes again; None when nothing was closed yet."""
        return self._closed_until

    def end_pane(self, newest: int, grid: Grid) -> int:
        """End the pane that is being filled, so that something new may begin behind it; gives where.

        That is at `newest`, which no row so far is behind, or where another pane ends there or later, at the next edge
        of `grid`. Whoever looks at whole panes of the old length sees the same rows, if there is an edge from now on.
        """
        edges = self._open.edges
        others = np.append(self.closed_edges, np.sort(edges)[:-1])
        first = int(np.max(others, initial=BEGINNING)) + bool(len(edges))  # no two panes have the same name
        at = newest if first <= newest else grid.ceil(first)
        self._open.replace(np.minimum(edges, at))
        return at

    def cut(self, edge: int) -> None:
        """End the pane that is being filled at `edge`: every row so far is at or before it, and none to come is."""
        at = self.end_pane(edge, self.grid)
        assert at == edge
        self.close(edge)

    def expire(self, edge: int) -> None:
        """Forget panes with upper edge <= edge, and now and then the groups that are in no pane any more."""
        gone = self._layout.expire(edge)
        self._expired += gone
        if gone:
            self._stores.expire(gone)
        # Looking for dead groups costs O(groups): do it a few times per window length.
        if gone and 4 * self._expired > self.panes:
            self._expired = 0
            self.purge(spare_dead=self.groups // 2)

    def purge(self, spare_dead: int = 0) -> None:
        """Forget groups and strings that are in no pane, if they are more than `spare_dead`; renumbers the others."""
        self._components.purge_labels(spare_dead, self._layout)
        if not self.dictionary.key_types:
            return
        live = np.flatnonzero(self._layout.rows(self._open.count, self.groups))
        if self.groups - len(live) > spare_dead:
            self._searches.select(live, self.groups)
            self.dictionary.compact(live)
            self._layout.select(live, self._open.count)
            self._stores.select(live)

    # -- answers out ----------------------------------------------------------------------------------------------

    def lookup(self, starts: Any, ends: Any, components: Sequence[int], limits: Limits | None = None) -> Lookup:
        """The partials of the windows (start, end] over closed panes, for the groups that have rows in them.

        Without key columns every window gives one row. About 3 ns per row for subtractable components. With `limits`
        only the groups within them.
        """
        layout, groups = self._layout, self.groups
        specs, numbers = self._components.specs, self._components.numbers
        starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        first, last = layout.range_of(starts, ends)
        answers: dict[int, tuple[Any, ...]] = {}
        if self.dictionary.key_types and limits is not None:
            number = numbers[limits.place]
            offsets, present, words = self._searches.within(layout, number, starts, ends, groups, limits)
            if words is not None:
                answers[number] = self._components.typed(specs[limits.place], words)
        elif self.dictionary.key_types:
            offsets, present = layout.present(first, last, groups)
        else:
            offsets, present = np.arange(len(first) + 1), np.zeros(len(first), np.int32)
        windows: Windows | None = None
        for i in components:
            spec, number = specs[i], numbers[i]
            if number == COLLECTED:
                if windows is None:
                    group = Lookup(offsets, present, groups, ()).group
                    windows = Windows(first, last, offsets, group, groups, layout.edges)
                answers[~i] = (self._stores.lookup(spec, windows),)
            elif number not in answers:
                words = layout.answer(number, first, last, groups, offsets, present)
                answers[number] = self._components.typed(spec, words)
        chosen = [~i if numbers[i] == COLLECTED else numbers[i] for i in components]
        return Lookup(offsets, present, groups, tuple(answers[one] for one in chosen))

    def search(self, place: int) -> Search | None:
        """How groups within limits of this component are found; None when nobody has asked yet."""
        return self._searches.get(self._components.numbers[place])

    def keys(self, found: Lookup) -> list[pa.Array]:
        """The key columns of the rows of a lookup; ask before the next `expire`."""
        if not self.dictionary.key_types or len(found.present) == len(found):
            return self.dictionary.keys(found.present) if self.dictionary.key_types else []
        every = self.dictionary.keys(np.arange(found.groups))
        return [pa.concat_arrays([column] * (len(found.offsets) - 1)) for column in every]

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything kept, as one Arrow IPC stream; restore it into a share group built with the same specs."""
        kept, partials = self._layout.snapshot(self._open.count, self.groups)
        kinds, labels = self._ranks.snapshot()
        meta = {
            "closed_until": self._closed_until,
            "expired": self._expired,
            "grid": [list(one) for one in self.grid.progressions],
            "specs": [[spec.component.name, spec.column] for spec in self.specs],
            "numbers": self._components.numbers,
            "layout": self._layout.name,
            "kept": kept,
            "ranks": kinds,
        }
        arrays = {"open": self._open.edges} | labels | self._stores.snapshot()
        return pack(meta, arrays | prefixed("keys", self.dictionary.snapshot()) | prefixed("kept", partials))

    def restore(self, data: bytes) -> None:
        """Become what `snapshot` wrote."""
        meta, arrays = unpack(data)
        specs = [[spec.component.name, spec.column] for spec in self.specs]
        if meta["specs"] != specs:
            raise ValueError(f"the snapshot has components {meta['specs']}, this share group has {specs}")
        self._closed_until = meta["closed_until"]
        # It decides when dead groups are purged, and so the order of those that come again.
        self._expired = meta["expired"]
        self._open.grid = Grid(tuple((step, phase) for step, phase in meta["grid"]))
        self._open.replace(numpy_of(arrays["open"]))
        self.dictionary.restore(within("keys", arrays))
        self._components.numbers = meta["numbers"]
        stored = {name: numpy_of(array) for name, array in within("kept", arrays).items()}
        self._ranks.restore(meta["ranks"], arrays)
        self._stores.restore(arrays)
        self._searches.clear()
        self._layout = self._blank(meta["layout"])
        self._layout.restore(meta["kept"], stored, self._components.by_number(), self._open.count)

    def _blank(self, layout: str | None) -> Layout:
        """Nothing kept; without keys there is one group, which is dense."""
        if layout == Sparse.name and self.dictionary.key_types:
            return Sparse()
        return Dense(FEWEST_GROUPS if self.dictionary.key_types else 1)
