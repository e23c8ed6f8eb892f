"""Frequent items (thesis chapter 6, Algorithm 6): per sub-window the k most frequent values, and nothing else.

A sub-window is one SLIDE of the query, and may be several panes of a share group. While it is open, or nobody has
looked at it, all its values are counted; then only its top-k list stays, and δᵢ, the count of the kth value. In a
window, δ = Σ δᵢ is the most that a value on none of its lists can occur. So a value with more than δ on the lists is
frequent: no false positives, and no reported count is above the true one; but some frequent values may be missed.

Update O(1) amortised per row; a lookup pays for the lists that enter and leave, and for the values on the lists of its
window. Space O(k) per complete sub-window and group, O(distinct values) in the newest one; APPROX_FREQUENT bounds that
too, by counters that may be too low by a known number, which is then added to δ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.collected import Question, Store
from windrow.kernels.frequent import slide_lists
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.entries import Entries
from windrow.synopses.open_entries import OpenEntries, renumber, translate
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.thinning import cell_starts, thin_counts

_KEPT = ("raw", "lost", "lists", "deltas")


class Frequent(Collection):
    """Raw entries of sub-windows that are not complete, lists of those that are; panes are numbered by position."""

    name = "frequent"

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._k, self._slide, self._phase, self._counters = (int(one) for one in store.parameters)
        self._open = OpenEntries(store.kind, self._cut if self._counters else None)
        self._open.on_translate(self._translate)
        self._panes = 0
        self._raw = Entries.none()
        self._lost = Entries.none()
        """By how much counts of raw entries may be too low, per pane and group."""
        self._lists = Entries.none()
        self._deltas = Entries.none()
        """δᵢ as the count of code 0."""
        self._settled = 0
        """The lists are those of the panes before this one."""

    @classmethod
    def reason(cls, ask: Question) -> str:
        """For EXPLAIN."""
        return "of every sub-window a list of its most frequent values is kept, and the count of the last one on it"

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._open.nbytes + sum(one.nbytes for one in self._kept)

    @property
    def _kept(self) -> tuple[Entries, ...]:
        return self._raw, self._lost, self._lists, self._deltas

    # -- open panes -----------------------------------------------------------------------------------------------

    def insert(self, slots: Codes, gids: Codes, values: pa.Array) -> None:
        """Count exactly."""
        self._open.insert(slots, gids, values)

    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """Per cell a list of (value, count)."""
        return self._open.partials(slots, gids)

    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Entries of other rows."""
        self._open.absorb(slots, gids, partials)

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, closing: Ints, staying: Ints) -> None:
        """Closed panes keep all counts until their sub-window is complete."""
        closed, lost = self._open.close(closing, staying)
        self._raw = Entries.joined([self._raw, _moved(closed, self._panes)])
        self._lost = Entries.joined([self._lost, _moved(lost, self._panes)])
        self._panes += len(closing)

    def fill(self, panes: int) -> None:
        """Panes without entries."""
        self._panes += panes

    def expire(self, panes: int) -> None:
        """Forget the first entries."""
        self._raw, self._lost, self._lists, self._deltas = (
            _moved(one[np.searchsorted(one.panes, panes) :], -panes).copy() for one in self._kept
        )
        self._panes -= panes
        self._settled = max(0, self._settled - panes)
        self._open.forget(np.concatenate([self._raw.codes, self._lists.codes]))

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        self._open.select(live)
        for one in self._kept:
            renumber(one.groups, live)

    def _translate(self, old: Ints, new: Ints) -> None:
        for one in (self._raw, self._lists):
            translate(one.codes, old, new)

    # -- answers --------------------------------------------------------------------------------------------------

    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """The values with more than δ on the lists of the window, most frequent first."""
        rows = len(windows.present)
        if not rows:
            return pa.nulls(0, ask.type)
        self._settle(windows.edges, int(windows.last.max()))
        group_major = np.argsort(windows.present, kind="stable")
        window = np.repeat(np.arange(len(windows.first)), np.diff(windows.offsets))[group_major]
        group = windows.present[group_major].astype(np.int64)
        first, last = windows.first[window], windows.last[window]
        lists, starts = _by_group(self._lists, windows.groups)
        deltas, _ = _by_group(self._deltas, windows.groups)
        delta = _sums(deltas, self._panes, group, first, last, deltas.counts)
        some = _sums(lists, self._panes, group, first, last, np.ones(len(lists), np.int64)) > 0
        order = np.lexsort((lists.codes, lists.groups))
        fresh = np.ones(len(lists), np.bool_)
        fresh[1:] = (np.diff(lists.codes[order]) != 0) | (np.diff(lists.groups[order]) != 0)
        places = np.empty(len(lists), np.int64)
        places[order] = np.cumsum(fresh) - 1
        codes = lists.codes[order][fresh]
        sizes = np.empty(rows, np.int64)
        totals, live, where = (np.zeros(len(codes), np.int64) for _ in range(3))

        def slide(chosen: Ints, counts: Ints, fill: bool) -> None:
            entries = (lists.panes, places, lists.counts, starts)
            slide_lists(*entries, group, first, last, delta, totals, live, where, sizes, chosen, counts, fill)

        nothing = np.empty(0, np.int64)
        slide(nothing, nothing, fill=False)
        total = int(sizes.sum())
        chosen, counts = np.empty(total, np.int64), np.empty(total, np.int64)
        slide(chosen, counts, fill=True)
        answer = np.repeat(group_major, sizes)
        best = np.lexsort((codes[chosen], -counts, answer))
        lengths = np.empty(rows, np.int64)
        lengths[group_major] = sizes
        empty = np.empty(rows, np.bool_)
        empty[group_major] = ~some
        names = [field.name for field in ask.type.value_type]
        values = self._open.codes.decode(codes[chosen[best]])
        structs = pa.StructArray.from_arrays([values, pa.array(counts[best])], names=names)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        at = pa.array(offsets, mask=np.append(empty, False)) if empty.any() else pa.array(offsets)
        return pa.ListArray.from_arrays(at, structs).cast(ask.type)

    def _settle(self, edges: Ints, panes: int) -> None:
        """Make lists of the panes before this one: windows end with a sub-window, so theirs are complete."""
        if panes <= self._settled:
            return
        self._settled = panes
        many = int(np.searchsorted(self._raw.panes, panes))
        raw, self._raw = self._raw[:many], self._raw[many:].copy()
        many = int(np.searchsorted(self._lost.panes, panes))
        lost, self._lost = self._lost[:many], self._lost[many:].copy()
        number = -((self._phase - edges[:panes]) // self._slide)
        # A list stands at the last pane of its sub-window.
        last = np.searchsorted(number, number, "right") - 1
        whole = Entries(last[raw.panes], raw.groups, raw.codes, raw.counts).counted()
        limits = [Entries(last[lost.panes], lost.groups, lost.codes, lost.counts)]
        if self._counters:
            whole, more = thin_counts(whole, self._counters)
            limits.append(more)
        lists, kth = _top(whole, self._k)
        self._lists = Entries.joined([self._lists, lists])
        self._deltas = Entries.joined([self._deltas, Entries.joined([kth, *limits]).counted()])

    def _cut(self, entries: Entries) -> tuple[Entries, Entries]:
        """While a pane is open: more counters than in the end, so that most panes lose nothing."""
        return thin_counts(entries, 16 * self._counters)

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Lists and raw entries."""
        arrays: dict[str, Any] = {"panes": np.array([self._panes, self._settled])}
        for name, one in zip(_KEPT, self._kept, strict=True):
            arrays |= prefixed(name, one.arrays())
        return arrays | prefixed("open", self._open.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._panes, self._settled = (int(one) for one in np.asarray(arrays["panes"]))
        self._raw, self._lost, self._lists, self._deltas = (Entries.of(within(name, arrays)) for name in _KEPT)
        self._open.restore(within("open", arrays))


def _top(entries: Entries, k: int) -> tuple[Entries, Entries]:
    """The k most frequent values of each cell, of equally frequent ones the smaller; and the count of the kth."""
    starts = cell_starts(entries)
    sizes = np.diff(np.append(starts, len(entries)))
    cell = np.repeat(np.arange(len(starts)), sizes)
    order = np.lexsort((entries.codes, -entries.counts, cell))
    rank = np.arange(len(entries)) - starts[cell]
    kth = entries[order[rank == k - 1]]
    return entries[np.sort(order[rank < k])], Entries(kth.panes, kth.groups, np.zeros_like(kth.codes), kth.counts)


def _moved(entries: Entries, panes: int) -> Entries:
    """The same entries so many panes later."""
    return Entries(entries.panes + panes, entries.groups, entries.codes, entries.counts)


def _by_group(entries: Entries, groups: int) -> tuple[Entries, Ints]:
    """In order of group and pane, and where each group begins."""
    order = np.argsort(entries.groups, kind="stable")
    sorted_ = entries[order]
    return sorted_, np.searchsorted(sorted_.groups, np.arange(groups + 1)).astype(np.int64)


def _sums(entries: Entries, panes: int, group: Ints, first: Ints, last: Ints, numbers: Ints) -> Ints:
    """The sum of numbers over the entries of a group in panes first..last-1, given entries by group and pane."""
    keys = entries.groups * (panes + 1) + entries.panes
    sums = np.concatenate([[0], np.cumsum(numbers)])
    low, high = (np.searchsorted(keys, group * (panes + 1) + edge) for edge in (first, last))
    return np.asarray(sums[high] - sums[low])
