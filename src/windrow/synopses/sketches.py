"""Sketches of the values of a pane: the entries that matter, for approximate quantiles and most frequent values.

An open pane counts its values; when it closes, each group keeps a fixed number of them (see `thinning`): evenly spaced
in rank, or with the highest counts. What is left goes into frequency counts, so that a window is the union of its
panes' sketches, and every question slides as the exact one does. Nothing is lost of a pane with few different values.

    quantile_sketch         512 entries   ranks off by at most 0.5 % of the values in the window
    frequent_items_sketch  1024 counters  counts too low by at most 0.1 % of the values in the window

Update O(1) amortised per row, space O(entries) per pane and group. Apache's KLL and frequent-items sketches give
such answers too, but flip coins that nobody can seed, so that a restored engine would answer otherwise than the one
that was not disturbed; and they need one call from Python per string. What is kept here can be written in their bytes
(KLL_SKETCH_AGG, ITEMS_SKETCH_AGG).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.collected import Question, Store
from windrow.aggregates.holistic import FREQUENCIES
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.entries import Entries
from windrow.synopses.frequencies import Frequencies
from windrow.synopses.lost_counts import LostCounts
from windrow.synopses.open_entries import OpenEntries, lists_of
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.thinning import cell_starts, halve_ranks, thin_counts, thin_ranks

OPEN_FACTOR = 32
"""An open cell may have so many times the entries of a closed one, so that what it loses does not show."""


class Sketch(Collection):
    """Open panes as entries; what is left of closed panes in frequency counts."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        (most,) = store.parameters
        self._most = int(most)
        self._open = OpenEntries(store.kind, self._cut)
        self._closed = Frequencies(Store(FREQUENCIES, store.kind))
        self._lost = LostCounts()

    @abstractmethod
    def _cut(self, entries: Entries) -> tuple[Entries, Entries]:
        """Fewer entries of cells that have very many, while they are open."""

    @abstractmethod
    def _thin(self, entries: Entries) -> tuple[Entries, Entries]:
        """At most `_most` entries per cell, and by how much the counts of a cell are too low now."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._open.nbytes + self._closed.nbytes + self._lost.nbytes

    # -- open panes -----------------------------------------------------------------------------------------------

    def insert(self, slots: Codes, gids: Codes, values: pa.Array) -> None:
        """Count them."""
        self._open.insert(slots, gids, values)

    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """Per cell a list of (value, count)."""
        return self._open.partials(slots, gids)

    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Entries of other rows."""
        self._open.absorb(slots, gids, partials)

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, closing: Ints, staying: Ints) -> None:
        """Thin out, and hand over."""
        closed, lost = self._open.close(closing, staying)
        left, more = self._thin(closed)
        at = cell_starts(left)
        if len(at):
            slots, gids = left.panes[at], left.groups[at]
            lists = lists_of(left, self._open.codes, slots, gids)
            self._closed.absorb(slots.astype(np.int32), gids.astype(np.int32), lists)
        self._closed.close(np.arange(len(closing)), np.empty(0, np.int64))
        self._lost.push(Entries.joined([lost, more]).counted(), len(closing))
        self._open.forget(np.empty(0, np.int64))

    def fill(self, panes: int) -> None:
        """Panes that hold nothing."""
        self._closed.fill(panes)
        self._lost.push(Entries.none(), panes)

    def expire(self, panes: int) -> None:
        """Forget the first panes."""
        self._closed.expire(panes)
        self._lost.expire(panes)

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        self._open.select(live)
        self._closed.select(live)
        self._lost.select(live)

    # -- answers --------------------------------------------------------------------------------------------------

    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """As if the entries that are left were all values."""
        return self._closed.lookup(windows, ask)

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All parts."""
        arrays = prefixed("open", self._open.snapshot()) | prefixed("closed", self._closed.snapshot())
        return arrays | prefixed("lost", self._lost.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._open.restore(within("open", arrays))
        self._closed.restore(within("closed", arrays))
        self._lost.restore(within("lost", arrays))


class QuantileSketch(Sketch):
    """Entries evenly spaced in rank: for APPROX_QUANTILE, APPROX_MEDIAN and KLL_SKETCH_AGG."""

    name = "quantile_sketch"

    @classmethod
    def reason(cls, ask: Question) -> str:
        """For EXPLAIN."""
        return "a fixed number of values per pane and group is kept, evenly spaced in rank"

    def _cut(self, entries: Entries) -> tuple[Entries, Entries]:
        return halve_ranks(entries, OPEN_FACTOR // 2 * self._most), Entries.none()

    def _thin(self, entries: Entries) -> tuple[Entries, Entries]:
        return thin_ranks(entries, self._most), Entries.none()


class FrequentItemsSketch(Sketch):
    """The values with the highest counts: for APPROX_TOP_K and ITEMS_SKETCH_AGG."""

    name = "frequent_items_sketch"

    @classmethod
    def reason(cls, ask: Question) -> str:
        """For EXPLAIN."""
        return "a fixed number of values per pane and group is kept, those with the highest counts"

    def _cut(self, entries: Entries) -> tuple[Entries, Entries]:
        return thin_counts(entries, OPEN_FACTOR * self._most)

    def _thin(self, entries: Entries) -> tuple[Entries, Entries]:
        return thin_counts(entries, self._most)

    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """The most frequent values; or all counters of a window, as few as a pane has, and what they have lost."""
        if ask.name != "counters":
            return super().lookup(windows, ask)
        listed = ask.type.field("counters").type
        # One more than there may be: its count is what all of them lose (Misra & Gries), as when a pane closes.
        lists = self._closed.lookup(windows, Question("top_k", listed, (self._most + 1,)))
        sizes = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        pairs = lists.flatten()
        counts, cut = pairs.field("count").to_numpy(), np.zeros(len(sizes), np.int64)
        full = sizes > self._most
        cut[full] = counts[np.cumsum(sizes)[full] - 1]
        row = np.repeat(np.arange(len(sizes)), sizes)
        left = counts - cut[row]
        kept = left > 0
        values = pairs.field("value").filter(pa.array(kept))
        ends = np.cumsum(np.bincount(row[kept], minlength=len(sizes)))
        counters = pa.ListArray.from_arrays(
            pa.array(np.concatenate([[0], ends]).astype(np.int32)),
            pa.StructArray.from_arrays([values, pa.array(left[kept])], fields=list(listed.value_type)),
        )
        lost = pa.array(self._lost.sums(windows) + cut)
        return pa.StructArray.from_arrays([counters.cast(listed), lost], fields=list(ask.type))
