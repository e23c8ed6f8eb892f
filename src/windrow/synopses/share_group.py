"""A share group: all periodic queries with the same stream, predicate and grouping (thesis 8.3), over one set of panes.

One pass over a batch fills the open panes of every component; a closed pane goes to the synopses; a query costs its
lookups only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected, Store
from windrow.aggregates.columns import validity
from windrow.aggregates.count import Count, CountRows
from windrow.aggregates.extremes import MaxText, MinText
from windrow.errors import QueryError
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.synopses.candidate_search import Limits
from windrow.synopses.chooser import Choice
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.collections import collection
from windrow.synopses.dense import FEWEST_GROUPS, Dense
from windrow.synopses.groups import Groups
from windrow.synopses.layout import Layout
from windrow.synopses.open_panes import AssignedPanes, OpenPanes
from windrow.synopses.partials import Partials
from windrow.synopses.ranks import TextRanks
from windrow.synopses.registry import chosen, may_choose, reason
from windrow.synopses.running import Running
from windrow.synopses.searches import Search, Searches
from windrow.synopses.snapshot import numpy_of, pack, prefixed, unpack, within
from windrow.synopses.sparse import Sparse
from windrow.synopses.workload import Expected
from windrow.windows.grid import Grid
from windrow.windows.spec import MAX_TICK

SMALL = 1 << 22
"""Up to so many cells (panes times groups) the dense layout is never given up."""
THIN = 8
"""Beyond it, the sparse layout is taken when there are this many cells for each row in the panes."""
MAX_CELLS = (1 << 31) - 1
COLLECTED = -1
"""In place of a component's number in the layout: it is in a collection."""
MIN_TICK = -MAX_TICK - 1


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
    present: Codes
    """The gid of each row; empty when every window has all groups."""
    groups: int
    words: tuple[tuple[Any, ...], ...]
    """The typed words of each component asked for: NumPy arrays, for strings an Arrow array."""

    @cached_property
    def group(self) -> Codes:
        """The gid of each row; valid until the next `expire`, which may renumber groups."""
        if len(self.present) == len(self):
            return self.present
        return np.tile(np.arange(self.groups, dtype=np.int32), len(self.offsets) - 1)

    @cached_property
    def window(self) -> Codes:
        """The index of the window of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    def __len__(self) -> int:
        return int(self.offsets[-1])


@dataclass(frozen=True)
class Placed:
    """Where the rows of a batch go: the open cell of each, and the pane and group that it stands for."""

    cells: Codes
    slots: Codes
    gids: Codes | None

    def of(self, valid: NDArray[np.bool_] | None) -> tuple[Codes, Codes]:
        """Slot and group of the rows that are valid."""
        gids = np.zeros(len(self.slots), np.int32) if self.gids is None else self.gids
        return (self.slots, gids) if valid is None else (self.slots[valid], gids[valid])


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
        self._specs: list[ComponentSpec] = []
        # The number of each spec's component in the layout; 0 is the row count, and so is COUNT(x) before any NULL.
        self._numbers: list[int] = []
        # By value column: the order of strings under MIN and MAX.
        self._ranks: dict[int, TextRanks] = {}
        # By value column and store: what is no fixed number of words.
        self._collections: dict[tuple[int, Store], Collection] = {}
        self.failures: dict[int, QueryError] = {}
        """By place: why a component could not take in some rows, so that its words are wrong since."""
        self._searches = Searches()
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
        return len(self._layout.edges)

    @property
    def closed_edges(self) -> Ints:
        """The upper edges of the closed panes, ascending."""
        return self._layout.edges

    @property
    def newest_edge(self) -> int:
        """The greatest upper edge of all panes, open or closed; MIN_TICK when there is none."""
        return int(max(np.max(self._open.edges, initial=MIN_TICK), np.max(self.closed_edges, initial=MIN_TICK)))

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
        more = sum(one.nbytes for one in self._ranks.values())
        more += sum(one.nbytes for one in self._collections.values())
        return self.dictionary.nbytes + self._open.nbytes + self._layout.nbytes + self._searches.nbytes + more

    def add_components(self, specs: Sequence[ComponentSpec]) -> list[int]:
        """The position of each component, which is added unless it is there; it knows only rows from now on."""
        for spec in specs:
            if spec not in self._specs:
                if isinstance(spec.component, Collected):
                    number = COLLECTED
                    self._collect(spec)
                else:
                    number = 0 if _is_row_count(spec) else self._layout.track(spec.component, spec.synopsis)
                self._specs.append(spec)
                self._numbers.append(number)
        return [self._specs.index(spec) for spec in specs]

    def _collect(self, spec: ComponentSpec) -> None:
        """Keep a collection for a component, unless another one has asked for it."""
        key = _collection_key(spec)
        if key not in self._collections:
            self._collections[key] = collection(key[1])
            self._collections[key].fill(self.panes)

    def take_back(self, count: int) -> None:
        """Forget the last so many components, which were lent a place: their collection stays with the others."""
        if count:
            del self._specs[-count:], self._numbers[-count:]

    def keep_components(self, places: Sequence[int]) -> list[int]:
        """Free all components but these: places[k] becomes k.

        Gives the value columns that they use, in the order of first use: columns[k] becomes k, and `insert` takes these
        only from now on.
        """
        specs = [self._specs[place] for place in places]
        self.failures = {new: self.failures[old] for new, old in enumerate(places) if old in self.failures}
        used = [self._numbers[place] for place in places]
        columns = list(dict.fromkeys(spec.column for spec in specs if spec.column is not None))
        column_of = {old: new for new, old in enumerate(columns)}
        numbers = sorted({0, *used} - {COLLECTED})
        number_of = {old: new for new, old in enumerate(numbers)} | {COLLECTED: COLLECTED}
        self._layout.keep(numbers)
        self._searches.clear()
        self._numbers = [number_of[number] for number in used]
        self._specs = [spec if spec.column is None else replace(spec, column=column_of[spec.column]) for spec in specs]
        # A column may stay for its count while nobody asks for its smallest or greatest string any more.
        texts = {spec.column for spec in specs if isinstance(spec.component, MinText | MaxText)}
        self._ranks = {column_of[column]: ranks for column, ranks in self._ranks.items() if column in texts}
        collected = {_collection_key(spec) for spec in specs if isinstance(spec.component, Collected)}
        self._collections = {
            (column_of[column], store): one
            for (column, store), one in self._collections.items()
            if (column, store) in collected
        }
        return columns

    def expect(self, expected: Sequence[Expected]) -> None:
        """The windows that will be looked up, by place: a hint for the choice of synopses; others are answered too."""
        for number, windows in zip(self._numbers, expected, strict=True):
            if number > 0:
                self._layout.expect(number, windows)

    def force(self, synopses: Sequence[str | None]) -> None:
        """By place: the synopsis to keep a component in; None leaves that to its spec, or to the chooser."""
        for place, (spec, name) in enumerate(zip(self._specs, synopses, strict=True)):
            if not may_choose(spec.component):
                continue
            if self._numbers[place] == 0 and name not in (None, Running.name) and isinstance(self._layout, Dense):
                self._numbers[place] = self._layout.track_rows(spec.component)
            if self._numbers[place] > 0:
                self._layout.force(self._numbers[place], name or spec.synopsis)

    def explain(self, place: int) -> Choice:
        """How the component at this place is kept, and why."""
        spec, number = self._specs[place], self._numbers[place]
        if number == COLLECTED:
            return Choice(chosen(spec.component), reason(spec.component))
        return self._layout.explain(number)

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
            self._accumulate(self._scatter(ts, keys, panes), values)

    def _scatter(self, ts: Ints, keys: Sequence[pa.Array], panes: AssignedPanes | None = None) -> Placed:
        """The open cell of each row, which is counted there."""
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
        if gids is not None and self._collections:
            gids = gids.copy()  # they may be in scratch memory, which strings of a value column use again
        return Placed(cells, slots, gids)

    def partials(self) -> Partials:
        """What is in the open panes, for `absorb` of another share group with the same specs and grid."""
        slots, gids, cells = self._layout.open_cells(self._open.count, self.groups)
        rows = self._layout.words(0)[0][cells]
        words: list[tuple[Any, ...]] = []
        told: set[tuple[int, Store]] = set()
        for spec, number in zip(self._specs, self._numbers, strict=True):
            if number == COLLECTED and _collection_key(spec) not in told:
                told.add(_collection_key(spec))
                words.append((self._collections[_collection_key(spec)].partials(slots, gids),))
            elif number in (0, COLLECTED):
                words.append((rows,))  # they need not be told again
            else:
                words.append(self._typed(spec, np.stack([word[cells] for word in self._layout.words(number)])))
        keys = self.dictionary.keys(gids) if self.dictionary.key_types else []
        return Partials(self._open.edges[slots], keys, rows, tuple(words))

    def absorb(self, part: Partials, positions: Sequence[int]) -> None:
        """Add partials of rows that were inserted elsewhere; their component i is the one at positions[i] here."""
        if not len(part):
            return
        # Each (pane, group) comes once, so plain indexing may add to its cell, where one row is counted already.
        placed = self._scatter(part.edges, part.keys)
        cells = np.array(placed.cells)
        self._layout.words(0)[0][cells] += part.rows - 1
        for i, words in zip(positions, part.words, strict=True):
            spec, number = self._specs[i], self._numbers[i]
            component = spec.component
            if number == COLLECTED:
                if words[0] is not part.rows:
                    valid = validity(words[0])
                    entries = words[0] if valid is None else words[0].drop_null()
                    self._collections[_collection_key(spec)].absorb(*placed.of(valid), entries)
            elif number == 0:
                if words[0] is not part.rows and not (words[0] == part.rows).all():
                    number = self._numbers[i] = self._layout.track_rows(component)
                    self._layout.words(number)[0][cells] += words[0] - part.rows
            elif isinstance(component, MinText | MaxText) and spec.column is not None:
                valid = validity(words[0])
                labels = self._label(spec.column, words[0] if valid is None else words[0].drop_null())
                self._combine(number, component, cells if valid is None else cells[valid], labels[None, :])
            else:
                try:
                    self._combine(number, component, cells, np.stack([word.view(np.int64) for word in words]))
                except QueryError as error:
                    self.failures[i] = error

    def _combine(self, number: int, component: Component, cells: Codes, words: Ints) -> None:
        stored = self._layout.words(number)
        into = np.stack([word[cells] for word in stored])
        component.combine(into, np.ascontiguousarray(words))
        for word, result in zip(stored, into, strict=True):
            word[cells] = result

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

    def _accumulate(self, placed: Placed, values: Sequence[pa.Array | None]) -> None:
        """Scatter the value columns; NULLs are filtered once per column, and only when there are any."""
        cells = placed.cells
        for (place, _), one in self._collections.items():
            given = values[place]
            if given is not None:
                valid = validity(given)
                one.insert(*placed.of(valid), given if valid is None else given.drop_null())
        filtered: dict[int, tuple[NDArray[np.bool_] | None, Codes]] = {}
        labels: dict[int, Ints] = {}
        for i, spec in enumerate(self._specs):
            number, component = self._numbers[i], spec.component
            if number == COLLECTED:
                continue
            if isinstance(component, CountRows):
                if number:
                    component.accumulate(self._layout.words(number), cells, cells)
                continue
            column = None if spec.column is None else values[spec.column]
            if column is None or spec.column is None:
                continue  # its value failed: those who look it up are about to be stopped
            if spec.column not in filtered:
                valid = validity(column)
                filtered[spec.column] = (valid, cells if valid is None else cells[valid])
            valid, chosen = filtered[spec.column]
            if isinstance(component, Count):
                if number:
                    component.accumulate(self._layout.words(number), chosen, chosen)
                elif valid is not None:
                    # The first NULLs came: COUNT(x) is what the row count is, less these.
                    number = self._numbers[i] = self._layout.track_rows(component)
                    np.subtract.at(self._layout.words(number)[0], cells[~valid], 1)
                continue
            if isinstance(component, MinText | MaxText):
                if spec.column not in labels:
                    labels[spec.column] = self._label(spec.column, column if valid is None else column.drop_null())
                component.accumulate(self._layout.words(number), chosen, frozen(labels[spec.column]))
                continue
            lifted = component.lift(column)
            lifted = frozen(lifted if valid is None else lifted[valid])
            try:
                component.accumulate(self._layout.words(number), chosen, lifted)
            except QueryError as error:  # of a user's class: those who look it up are about to be stopped
                self.failures[i] = error

    def _label(self, column: int, strings: pa.Array) -> Ints:
        """The labels of strings; those in the panes are translated when they change."""
        numbers = self._text_numbers(column)

        def translate(old: Ints, new: Ints) -> None:
            for number in numbers:
                for words in self._layout.stored(number):
                    place = np.minimum(np.searchsorted(old, words), len(old) - 1)
                    np.copyto(words, new[place], where=old[place] == words)

        ranks = self._ranks.setdefault(column, TextRanks(strings.type))
        return ranks.encode(strings, translate)

    def _text_numbers(self, column: int) -> list[int]:
        """The numbers of the components that hold labels of this column."""
        pairs = zip(self._specs, self._numbers, strict=True)
        return [n for spec, n in pairs if spec.column == column and isinstance(spec.component, MinText | MaxText)]

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
            for one in self._collections.values():
                one.close(closing, staying)
            self._open.replace(edges[staying])

    def cut(self, edge: int) -> None:
        """End the pane that is being filled at `edge`: every row so far is at or before it, and none to come is."""
        self.close(edge)
        if self._open.count:
            assert self._open.count == 1
            self._open.replace(np.array([edge], np.int64))
            self.close(edge)

    def expire(self, edge: int) -> None:
        """Forget panes with upper edge <= edge, and now and then the groups that are in no pane any more."""
        gone = self._layout.expire(edge)
        self._expired += gone
        if gone:
            for one in self._collections.values():
                one.expire(gone)
        # Looking for dead groups costs O(groups): do it a few times per window length.
        if gone and 4 * self._expired > self.panes:
            self._expired = 0
            self.purge(spare_dead=self.groups // 2)

    def purge(self, spare_dead: int = 0) -> None:
        """Forget groups and strings that are in no pane, if they are more than `spare_dead`; renumbers the others."""
        for column, ranks in self._ranks.items():
            stored = [words for number in self._text_numbers(column) for words in self._layout.stored(number)]
            live = np.unique(np.concatenate([np.unique(words) for words in stored]))
            if len(ranks) - len(live) > min(spare_dead, len(ranks) // 2):
                ranks.compact(live)
        if not self.dictionary.key_types:
            return
        live = np.flatnonzero(self._layout.rows(self._open.count, self.groups))
        if self.groups - len(live) > spare_dead:
            self._searches.select(live, self.groups)
            self.dictionary.compact(live)
            self._layout.select(live, self._open.count)
            for one in self._collections.values():
                one.select(live)

    # -- answers out ----------------------------------------------------------------------------------------------

    def lookup(self, starts: Any, ends: Any, components: Sequence[int], limits: Limits | None = None) -> Lookup:
        """The partials of the windows (start, end] over closed panes, for the groups that have rows in them.

        Without key columns every window gives one row. About 3 ns per row for subtractable components. With `limits`
        only the groups within them.
        """
        layout, groups = self._layout, self.groups
        starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        first, last = layout.range_of(starts, ends)
        answers: dict[int, tuple[Any, ...]] = {}
        if self.dictionary.key_types and limits is not None:
            number = self._numbers[limits.place]
            offsets, present, words = self._searches.within(layout, number, starts, ends, groups, limits)
            if words is not None:
                answers[number] = self._typed(self._specs[limits.place], words)
        elif self.dictionary.key_types:
            offsets, present = layout.present(first, last, groups)
        else:
            offsets, present = np.arange(len(first) + 1), np.zeros(len(first), np.int32)
        windows: Windows | None = None
        for i in components:
            spec, number = self._specs[i], self._numbers[i]
            if isinstance(spec.component, Collected):
                if windows is None:
                    group = Lookup(offsets, present, groups, ()).group
                    windows = Windows(first, last, offsets, group, groups, layout.edges)
                answers[~i] = (self._collections[_collection_key(spec)].lookup(windows, spec.component.question),)
            elif number not in answers:
                words = layout.answer(number, first, last, groups, offsets, present)
                answers[number] = self._typed(spec, words)
        chosen = [~i if self._numbers[i] == COLLECTED else self._numbers[i] for i in components]
        return Lookup(offsets, present, groups, tuple(answers[one] for one in chosen))

    def search(self, place: int) -> Search | None:
        """How groups within limits of this component are found; None when nobody has asked yet."""
        return self._searches.get(self._numbers[place])

    def keys(self, found: Lookup) -> list[pa.Array]:
        """The key columns of the rows of a lookup; ask before the next `expire`."""
        if not self.dictionary.key_types or len(found.present) == len(found):
            return self.dictionary.keys(found.present) if self.dictionary.key_types else []
        every = self.dictionary.keys(np.arange(found.groups))
        return [pa.concat_arrays([column] * (len(found.offsets) - 1)) for column in every]

    def _typed(self, spec: ComponentSpec, words: Ints) -> tuple[Any, ...]:
        """The words in their own types; strings in place of labels."""
        if isinstance(spec.component, MinText | MaxText) and spec.column is not None:
            ranks = self._ranks.get(spec.column)
            return (pa.nulls(words.shape[1], pa.string()) if ranks is None else ranks.decode(words[0]),)
        return spec.component.typed(words)

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything kept, as one Arrow IPC stream; restore it into a share group built with the same specs."""
        kept, partials = self._layout.snapshot(self._open.count, self.groups)
        meta = {
            "closed_until": self._closed_until,
            "expired": self._expired,
            "grid": [list(one) for one in self.grid.progressions],
            "specs": [[spec.component.name, spec.column] for spec in self._specs],
            "numbers": self._numbers,
            "layout": self._layout.name,
            "kept": kept,
            "ranks": {column: str(ranks.kind) for column, ranks in self._ranks.items()},
        }
        arrays = {"open": self._open.edges}
        for column, ranks in self._ranks.items():
            arrays |= prefixed(f"ranks.{column}", ranks.snapshot())
        for k, one in enumerate(self._collections.values()):
            arrays |= prefixed(f"collection.{k}", one.snapshot())
        return pack(meta, arrays | prefixed("keys", self.dictionary.snapshot()) | prefixed("kept", partials))

    def restore(self, data: bytes) -> None:
        """Become what `snapshot` wrote."""
        meta, arrays = unpack(data)
        specs = [[spec.component.name, spec.column] for spec in self._specs]
        if meta["specs"] != specs:
            raise ValueError(f"the snapshot has components {meta['specs']}, this share group has {specs}")
        self._closed_until = meta["closed_until"]
        # It decides when dead groups are purged, and so the order of those that come again.
        self._expired = meta["expired"]
        self._open.grid = Grid(tuple((step, phase) for step, phase in meta["grid"]))
        self._open.replace(numpy_of(arrays["open"]))
        self.dictionary.restore(within("keys", arrays))
        self._numbers = meta["numbers"]
        by_number: dict[int, Component] = {0: CountRows()}
        by_number |= {n: s.component for n, s in zip(self._numbers, self._specs, strict=True) if n > 0}
        components = [by_number[number] for number in sorted(by_number)]
        stored = {name: numpy_of(array) for name, array in within("kept", arrays).items()}
        self._ranks = {}
        for column, kind in meta["ranks"].items():
            self._ranks[int(column)] = TextRanks(pa.type_for_alias(kind))
            self._ranks[int(column)].restore(within(f"ranks.{column}", arrays))
        for k, one in enumerate(self._collections.values()):
            one.restore(within(f"collection.{k}", arrays))
        self._searches.clear()
        self._layout = self._blank(meta["layout"])
        self._layout.restore(meta["kept"], stored, components, self._open.count)

    def _blank(self, layout: str | None) -> Layout:
        """Nothing kept; without keys there is one group, which is dense."""
        if layout == Sparse.name and self.dictionary.key_types:
            return Sparse()
        return Dense(FEWEST_GROUPS if self.dictionary.key_types else 1)


def _collection_key(spec: ComponentSpec) -> tuple[int, Store]:
    assert isinstance(spec.component, Collected) and spec.column is not None
    return spec.column, spec.component.store


def _is_row_count(spec: ComponentSpec) -> bool:
    return isinstance(spec.component, Count) and spec.synopsis is None
