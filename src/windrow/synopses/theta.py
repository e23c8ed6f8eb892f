"""Theta sketches per pane and group, for THETA_SKETCH_AGG: the smallest hashes (bottom-k; Bar-Yossef et al. 2002).

A cell keeps the k + 1 smallest different 63-bit hashes of its values, ascending; if it has that many, the last is θ,
and the sketch is the k below it: k / θ values are estimated, with relative standard error 1 / √(k - 1). Fewer values
are all there, and counted exactly. The union of panes is the k + 1 smallest of theirs. So a sketch is a function of the
set of values, whatever the order and the cut of the input and whoever has sliced it; Apache's own sketch of the same
values depends on their order when there are more than k, and has other bytes, but both are theta sketches and can be
united, intersected and subtracted (see `theta_format`).

Update O(1) amortised per row: a hash above the bound of its cell is dropped at once. A lookup unites the panes it
reaches in base intervals once, O(k) per pane, then O(k log panes) per window, of which O(k) is the answer. Space at
most 8 (k + 1) bytes per pane and group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.blobs import blobs
from windrow.aggregates.collected import Question, Store
from windrow.kernels import theta as kernels
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.cell_bytes import LOW, cell_keys, places_of
from windrow.synopses.codes import IntCodes
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.open_entries import renumber
from windrow.synopses.pane_index import PaneIndex
from windrow.synopses.queue import Queue
from windrow.synopses.snapshot import numpy_of, prefixed, within
from windrow.synopses.theta_format import MAX_THETA, sketches
from windrow.synopses.value_hashes import hashes_of

MANY_HASHES = 1 << 17
"""So many hashes of open panes, and as many as there are in order, wait to be put in order."""
CHUNK = 1 << 16
"""Rows that are taken in at once: their hash table stays in the cache."""
ANSWER_HASHES = 1 << 23
"""Hashes of answers that are united at once (64 MiB)."""


class Theta(Collection):
    """The smallest hashes of open panes by cell, of closed panes in order of pane and group."""

    name = "theta"

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        (lg_k,) = store.parameters
        self._nominal = 1 << int(lg_k)
        self._open = _OpenCells(self._nominal + 1)
        self._cells = PaneIndex()
        self._sizes = Queue(np.int64)
        self._hashes = Queue(np.int64)

    @classmethod
    def reason(cls, ask: Question) -> str:
        """For EXPLAIN."""
        return "the smallest hashes of a pane and group are kept, whatever the number of values"

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.nbytes for one in (self._open, self._cells, self._sizes, self._hashes))

    # -- open panes -----------------------------------------------------------------------------------------------

    def insert(self, slots: Codes, gids: Codes, values: pa.Array) -> None:
        """Hash, and keep what is small."""
        self._open.add(cell_keys(slots, gids), hashes_of(values))

    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """Per cell the list of its hashes."""
        return self._open.lists(cell_keys(slots, gids))

    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Hashes of other rows."""
        sizes = partials.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        self._open.add(np.repeat(cell_keys(slots, gids), sizes), partials.flatten().to_numpy())

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, closing: Ints, staying: Ints) -> None:
        """Cells are put in order and appended."""
        rank = np.empty(len(closing) + len(staying), np.int64)
        rank[closing] = np.arange(len(closing))
        rank[staying] = len(closing) + np.arange(len(staying))
        panes, gids, sizes, hashes = self._open.close(rank, len(closing))
        self._cells.push(panes, gids, len(closing))
        self._sizes.push(sizes)
        self._hashes.push(hashes)

    def fill(self, panes: int) -> None:
        """Panes without cells."""
        nothing = np.empty(0, np.int64)
        self._cells.push(nothing, nothing, panes)

    def expire(self, panes: int) -> None:
        """Drop the first cells."""
        gone = self._cells.drop(panes)
        self._hashes.drop(int(self._sizes.rows[:gone].sum()))
        self._sizes.drop(gone)

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        self._open.select(live)
        self._cells.select(live)

    # -- answers --------------------------------------------------------------------------------------------------

    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """The sketch of each window and group; an empty one where there is no value."""
        if not len(windows.present):
            return pa.nulls(0, ask.type)
        group_major = np.argsort(windows.present, kind="stable")
        window = np.repeat(np.arange(len(windows.first)), np.diff(windows.offsets))[group_major]
        low, high = int(windows.first.min()), int(windows.last.max())
        panes, order, starts = self._cells.by_group(low, high, windows.groups)
        sizes = self._sizes.rows
        begin = (np.cumsum(sizes) - sizes)[order]
        most = self._nominal + 1
        group = windows.present[group_major].astype(np.int64)
        # A row has at most so many hashes: as many rows are united at once as have room.
        in_group = np.diff(np.concatenate([[0], np.cumsum(sizes[order])])[starts])
        room = np.cumsum(np.minimum(in_group[group], most))
        parts, first = [], 0
        while first < len(group):
            before = int(room[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(room, before + ANSWER_HASHES, "right")))
            some, out = window[first:last], np.empty(int(room[last - 1]) - before, np.int64)
            ends = np.empty(last - first, np.int64)
            kernels.united_windows(
                self._hashes.rows,
                panes,
                begin,
                begin + sizes[order],
                starts,
                group[first:last],
                windows.first[some],
                windows.last[some],
                most,
                out,
                ends,
            )
            parts.append(sketches(ends, out[: int(ends[-1])], self._nominal))
            first = last
        place = np.empty(len(group), np.int64)
        place[group_major] = np.arange(len(group))
        return blobs(pa.concat_arrays(parts).take(pa.array(place)))

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything, in order."""
        arrays = {"sizes": self._sizes.rows, "hashes": self._hashes.rows}
        return arrays | prefixed("cells", self._cells.snapshot()) | prefixed("open", self._open.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._sizes.load(numpy_of(arrays["sizes"]))
        self._hashes.load(numpy_of(arrays["hashes"]))
        self._cells.restore(within("cells", arrays))
        self._open.restore(within("open", arrays))


class _OpenCells:
    """The smallest hashes of cells (slot, group): those that are in order, and those that came since."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cells = IntCodes(direct=False)
        self._bounds: Ints = np.empty(0, np.int64)
        """By cell: hashes from here on are not among the smallest, or are there already."""
        self._hashes: Ints = np.empty(0, np.int64)
        self._ends: Ints = np.zeros(1, np.int64)
        """Those of cell c are ends[c]..ends[c+1]-1, ascending."""
        self._fresh: list[tuple[Ints, Ints]] = []
        """Cells and hashes."""
        self._waiting = 0

    @property
    def nbytes(self) -> int:
        arrays = (self._bounds, self._hashes, self._ends, *(one for part in self._fresh for one in part))
        return self._cells.nbytes + sum(int(one.nbytes) for one in arrays)

    def add(self, keys: Ints, hashes: Ints) -> None:
        """One hash of the cell keys[i] each."""
        cells = self._cells.encode_ints(keys, "theta").astype(np.int64)
        more = len(self._cells) - len(self._bounds)
        if more:
            self._bounds = np.concatenate([self._bounds, np.full(more, MAX_THETA)])
            self._ends = np.concatenate([self._ends, np.full(more, len(self._hashes))])
        # Part by part: cells that are full by then take few of the others.
        for start in range(0, len(cells), CHUNK):
            self._add_few(cells[start : start + CHUNK], hashes[start : start + CHUNK])

    def _add_few(self, cells: Ints, hashes: Ints) -> None:
        size = 1 << max(4, 2 * len(cells)).bit_length()
        table, new_cells, new_hashes = np.full(size, -1, np.int32), np.empty_like(cells), np.empty(len(cells), np.int64)
        shift = 65 - size.bit_length()
        many = kernels.fresh_hashes(cells, hashes, self._bounds, table, shift, new_cells, new_hashes)
        if not many:
            return
        self._fresh.append((new_cells[:many].copy(), new_hashes[:many].copy()))
        self._waiting += many
        if self._waiting > len(self._hashes) + MANY_HASHES:
            self._settle()

    def _settle(self) -> None:
        """Put in order what came, each hash once, and keep the smallest."""
        if not self._fresh:
            return
        cells, hashes = (np.concatenate(column) for column in zip(*self._fresh, strict=True))
        order = np.argsort(hashes)
        # Numbers of 16 bits are sorted by their digits.
        by_cell = cells[order].astype(np.uint16 if len(self._cells) < 1 << 16 else np.int64)
        order = order[np.argsort(by_cell, kind="stable")]
        cells, hashes = cells[order], hashes[order]
        new = np.ones(len(cells), np.bool_)
        new[1:] = (cells[1:] != cells[:-1]) | (hashes[1:] != hashes[:-1])
        ends = np.searchsorted(cells[new], np.arange(len(self._cells) + 1))
        out, out_ends = np.empty(len(self._hashes) + int(ends[-1]), np.int64), np.zeros_like(self._ends)
        kernels.unite_cells(
            self._hashes, self._ends, hashes[new], ends, self._most, self._bounds, out, out_ends
        )  # fmt: skip
        self._hashes, self._ends = out[: int(out_ends[-1])].copy(), out_ends
        self._fresh, self._waiting = [], 0

    def lists(self, keys: Ints) -> pa.Array:
        """The hashes of each cell; NULL for a cell without values."""
        self._settle()
        if not len(self._cells):
            return pa.nulls(len(keys), pa.large_list(pa.int64()))
        place, there = places_of(self._cells.uniques, keys)
        every = pa.LargeListArray.from_arrays(pa.array(self._ends), pa.array(self._hashes))
        return every.take(pa.array(place, mask=~there))

    def close(self, rank: Ints, closing: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Pane, group and size of the cells with a rank below `closing`, in order, and their hashes; others stay."""
        self._settle()
        keys = self._cells.uniques.copy()
        panes, gids = rank[keys >> 32], keys & LOW
        order = np.lexsort((gids, panes))
        done, left = order[panes[order] < closing], order[panes[order] >= closing]
        sizes, gone = _runs(self._ends, done)
        stay_sizes, stay = _runs(self._ends, left)
        closed = panes[done], gids[done], sizes, self._hashes[gone]
        self._cells.replace(((panes[left] - closing) << 32) | gids[left])
        self._bounds = self._bounds[left]
        self._hashes, self._ends = self._hashes[stay], np.concatenate([[0], np.cumsum(stay_sizes)])
        return closed

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        keys = self._cells.uniques.copy()
        gids = keys & LOW
        renumber(gids, live)
        self._cells.replace((keys & ~LOW) | gids)

    def snapshot(self) -> dict[str, Any]:
        self._settle()
        return {"keys": self._cells.uniques, "bounds": self._bounds, "hashes": self._hashes, "ends": self._ends}

    def restore(self, arrays: dict[str, Any]) -> None:
        self._cells.replace(numpy_of(arrays["keys"]))
        # They are written to: what was read may not be.
        self._bounds = numpy_of(arrays["bounds"]).copy()
        self._hashes, self._ends = numpy_of(arrays["hashes"]).copy(), numpy_of(arrays["ends"]).copy()
        self._fresh, self._waiting = [], 0


def _runs(ends: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """The sizes of the chosen runs ends[c]..ends[c+1]-1, and the places of what is in them, run after run."""
    sizes = ends[chosen + 1] - ends[chosen]
    return sizes, np.arange(int(sizes.sum())) + np.repeat(ends[chosen] - (np.cumsum(sizes) - sizes), sizes)
