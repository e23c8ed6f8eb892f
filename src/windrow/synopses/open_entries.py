"""Counted values of open panes: what collections that summarise a pane keep until it closes.

Rows wait until they are many, then equal ones are put together; O(distinct values per pane and group). A collection
that may lose something gives a `cut`: then cells with very many values are cut down while they are open, and what is
lost of their counts is kept beside them, as the count of no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.aggregates.columns import validity
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.entries import Entries
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.value_codes import ValueCodes

MANY_ENTRIES = 1 << 20
"""Entries of open panes that wait; then they are counted."""

Cut: TypeAlias = Callable[[Entries], tuple[Entries, Entries]]
"""Makes fewer entries of cells that have very many; also gives by how much the counts of a cell may be too low now."""


class OpenEntries:
    """(slot, group, value, count) of all open panes."""

    def __init__(self, kind: pa.DataType, cut: Cut | None = None) -> None:
        self.codes = ValueCodes(kind)
        self._cut = cut
        self._parts: list[Entries] = []
        self._lost = Entries.none()
        self._waiting = 0
        self._counted = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.nbytes for one in self._parts) + self.codes.nbytes

    def insert(self, slots: Codes, gids: Codes, values: pa.Array, counts: Ints | None = None) -> None:
        """One value per row, without NULLs."""
        # Copied first: they may be in scratch memory that the encoder uses too.
        panes, groups = slots.astype(np.int64), gids.astype(np.int64)
        codes = self.codes.encode(values, self._translate)
        if counts is None:
            counts = np.ones(len(codes), np.int64)
        self._parts.append(Entries(panes, groups, codes, counts))
        self._waiting += len(codes)
        if self._waiting > MANY_ENTRIES + self._counted:
            self._counted = len(self.settled(cut=True))

    def settled(self, *, cut: bool = False) -> Entries:
        """All entries, each (slot, group, value) once, in order."""
        whole = Entries.joined(self._parts).counted()
        if cut and self._cut is not None:
            whole, lost = self._cut(whole)
            self._lost = Entries.joined([self._lost, lost]).counted()
        self._parts, self._waiting = [whole], len(whole)
        return whole

    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """Per cell a list of (value, count), in which what was lost is the count of NULL."""
        return lists_of(self.settled(), self.codes, slots, gids, self._lost)

    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Entries of other rows."""
        lengths = partials.value_lengths().to_numpy().astype(np.int64)
        slots, gids = np.repeat(slots, lengths), np.repeat(gids, lengths)
        entries = partials.flatten()
        values, counts = entries.field("value"), entries.field("count").to_numpy().astype(np.int64)
        valid = validity(values)
        if valid is not None:
            none = ~valid
            lost = Entries(
                slots[none].astype(np.int64),
                gids[none].astype(np.int64),
                np.zeros(int(none.sum()), np.int64),
                counts[none],
            )
            self._lost = Entries.joined([self._lost, lost]).counted()
            slots, gids, values, counts = slots[valid], gids[valid], values.drop_null(), counts[valid]
        self.insert(slots, gids, values, counts)

    def close(self, closing: Ints, staying: Ints) -> tuple[Entries, Entries]:
        """The counted entries of the closing slots, closing[k] as pane k, and what they lost.

        Slot staying[k] becomes slot k.
        """
        rank = np.empty(len(closing) + len(staying), np.int64)
        rank[closing] = np.arange(len(closing))
        rank[staying] = len(closing) + np.arange(len(staying))
        whole, left = _parted(Entries.joined(self._parts), rank, len(closing))
        lost, self._lost = _parted(self._lost, rank, len(closing))
        self._parts, self._waiting, self._counted = [left], len(left), len(left)
        return whole, lost

    def select(self, live: Ints) -> None:
        """Renumber the groups."""
        for one in (*self._parts, self._lost):
            renumber(one.groups, live)

    def forget(self, more: Ints) -> None:
        """Now and then forget the strings that are neither here nor among the codes `more`."""
        self.codes.compact(lambda: np.unique(np.concatenate([more, *(one.codes for one in self._parts)])))

    def on_translate(self, also: Callable[[Ints, Ints], None]) -> None:
        """Who else stores codes, and must hear when they change."""
        self._also = also

    _also: Callable[[Ints, Ints], None] | None = None

    def _translate(self, old: Ints, new: Ints) -> None:
        for one in self._parts:
            translate(one.codes, old, new)
        if self._also is not None:
            self._also(old, new)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        arrays = prefixed("entries", self.settled().arrays()) | prefixed("lost", self._lost.arrays())
        return arrays | prefixed("codes", self.codes.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._parts = [Entries.of(within("entries", arrays))]
        self._lost = Entries.of(within("lost", arrays))
        self._waiting = self._counted = len(self._parts[0])
        self.codes.restore(within("codes", arrays))


def _parted(entries: Entries, rank: Ints, closing: int) -> tuple[Entries, Entries]:
    """Entries of closing slots, counted, and those of the slots that stay."""
    whole = Entries(rank[entries.panes], entries.groups, entries.codes, entries.counts).counted()
    done = int(np.searchsorted(whole.panes, closing))
    left = whole[done:].copy()
    return whole[:done], Entries(left.panes - closing, left.groups, left.codes, left.counts)


def lists_of(entries: Entries, codes: ValueCodes, slots: Ints, gids: Ints, lost: Entries | None = None) -> pa.Array:
    """For each cell (slots[i], gids[i]) the list of its (value, count), from counted entries of these cells."""
    values, counts = codes.decode(entries.codes), entries.counts
    have = (entries.panes << 32) | entries.groups
    if lost is not None and len(lost):
        have = np.concatenate([have, (lost.panes << 32) | lost.groups])
        by_cell = np.argsort(have, kind="stable")
        have, counts = have[by_cell], np.concatenate([counts, lost.counts])[by_cell]
        values = pa.concat_arrays([values, pa.nulls(len(lost), values.type)]).take(pa.array(by_cell))
    order = np.lexsort((gids, slots))
    wanted = ((slots << 32) | gids)[order]
    starts = np.searchsorted(have, wanted, "left")
    lengths = np.searchsorted(have, wanted, "right") - starts
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    assert offsets[-1] == len(have), "every entry is in a cell that has rows"
    pairs = pa.StructArray.from_arrays([values, pa.array(counts)], names=["value", "count"])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pairs).take(pa.array(place))


def renumber(groups: Ints, live: Ints) -> None:
    """Group live[k] becomes k, in place."""
    new = np.zeros(int(live[-1]) + 1 if len(live) else 1, np.int64)
    new[live] = np.arange(len(live))
    groups[:] = new[groups]


def translate(codes: Ints, old: Ints, new: Ints) -> None:
    """Code old[i] becomes new[i], in place; `old` is ascending."""
    codes[:] = new[np.searchsorted(old, codes)]
