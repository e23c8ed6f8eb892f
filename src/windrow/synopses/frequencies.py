"""Frequency counts (thesis 2.3.4): how often each value occurs, per pane and group; exact answers of any holistic kind.

COUNT(DISTINCT), MEDIAN, quantiles, MODE and TOP_K of one column share one collection. An entry is (group, value,
count); those of a pane are in order of group and value. Update O(1) per row and O(n log n) for the n different entries
of a pane when it closes; lookups see `sliding` and `frequency_index`. Space O(different values per pane and group), and
O(log panes) times that while an index is in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.collected import Question, Store
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.entries import Entries
from windrow.synopses.frequency_answers import Counted, answer, how, is_quantile, slides_only
from windrow.synopses.frequency_index import FrequencyIndex, Indexed
from windrow.synopses.queue import Queue
from windrow.synopses.sliding import Sliding
from windrow.synopses.snapshot import numpy_of, prefixed, within
from windrow.synopses.value_codes import ValueCodes

MANY_ROWS = 1 << 20
"""Rows of open panes that wait to be counted; then equal ones are put together."""


class Frequencies(Collection):
    """Entries of open panes as they came, entries of closed panes in order."""

    name = "frequencies"

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._codes = ValueCodes(store.kind)
        self._open: list[Entries] = []
        self._waiting = 0
        self._counted = 0
        self._reset()

    def _reset(self) -> None:
        """No closed panes."""
        self._groups, self._entry_codes, self._counts = Queue(np.int64), Queue(np.int64), Queue(np.int64)
        """Of the entries of closed panes."""
        # Where the entries of each closed pane begin, and the end, counted from the first entry ever.
        self._bounds = Queue(np.int64)
        self._bounds.push(np.zeros(1, np.int64))
        self._first = 0
        """The number of the first closed pane, which it keeps."""
        self._values = FrequencyIndex(by_last_pane=False)
        self._last_panes = FrequencyIndex(by_last_pane=True)
        self._sliding: Sliding | None = None

    @classmethod
    def reason(cls, ask: Question) -> str:
        """All values are kept; how a window is answered depends on the question."""
        return f"no fixed number of words is enough: every value is kept, with its count per pane; {how(ask)}"

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        own = sum(one.nbytes for one in self._open) + sum(one.nbytes for one in (*self._closed, self._bounds))
        return own + self._codes.nbytes + self._values.nbytes + self._last_panes.nbytes

    # -- open panes -----------------------------------------------------------------------------------------------

    def insert(self, slots: Codes, gids: Codes, values: pa.Array) -> None:
        """Rows wait until they are many, or somebody asks."""
        codes = self._codes.encode(values, self._translate)
        self._add(Entries(slots.astype(np.int64), gids.astype(np.int64), codes, np.ones(len(codes), np.int64)))

    def _add(self, entries: Entries) -> None:
        self._open.append(entries)
        self._waiting += len(entries)
        if self._waiting > MANY_ROWS + self._counted:
            self._counted = len(self._settled())

    def _settled(self) -> Entries:
        """All entries of open panes, each (slot, group, value) once, in order."""
        whole = Entries.joined(self._open).counted()
        self._open, self._waiting = [whole], len(whole)
        return whole

    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """Per cell a list of (value, count)."""
        whole = self._settled()
        order = np.lexsort((gids, slots))
        wanted, have = ((slots << 32) | gids)[order], (whole.panes << 32) | whole.groups
        starts = np.searchsorted(have, wanted, "left")
        lengths = np.searchsorted(have, wanted, "right") - starts
        lists = np.empty(len(order), np.int64)
        lists[order] = np.arange(len(order))
        entries = pa.StructArray.from_arrays(
            [self._codes.decode(whole.codes), pa.array(whole.counts)], names=["value", "count"]
        )
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        assert offsets[-1] == len(whole), "every entry is in a cell that has rows"
        sorted_lists = pa.LargeListArray.from_arrays(pa.array(offsets), entries)
        return sorted_lists.take(pa.array(lists))

    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Entries of other rows."""
        lengths = partials.value_lengths().to_numpy().astype(np.int64)
        entries = partials.flatten()
        codes = self._codes.encode(entries.field("value"), self._translate)
        counts = entries.field("count").to_numpy()
        self._add(
            Entries(
                np.repeat(slots.astype(np.int64), lengths), np.repeat(gids.astype(np.int64), lengths), codes, counts
            )
        )

    # -- time passes ----------------------------------------------------------------------------------------------

    def close(self, closing: Ints, staying: Ints) -> None:
        """Entries of closing panes are appended in order of pane, group and value."""
        rank = np.empty(len(closing) + len(staying), np.int64)
        rank[closing] = np.arange(len(closing))
        rank[staying] = len(closing) + np.arange(len(staying))
        whole = Entries.joined(self._open).in_panes(rank)
        left = whole[whole.panes >= len(closing)] if len(staying) else Entries.none()
        done = (whole[whole.panes < len(closing)] if len(left) else whole).counted()
        ends = np.searchsorted(done.panes, np.arange(len(closing)), "right")
        for queue, column in zip(self._closed, (done.groups, done.codes, done.counts), strict=True):
            queue.push(column)
        self._bounds.push(self._bounds.rows[-1] + ends)
        self._open = [left.in_panes(np.arange(-len(closing), len(staying)))]
        self._waiting = self._counted = len(left)
        self._sliding = None

    def fill(self, panes: int) -> None:
        """Panes without entries."""
        self._bounds.push(np.full(panes, self._bounds.rows[-1]))

    def expire(self, panes: int) -> None:
        """Drop the first entries, and now and then the strings that are in none."""
        bounds = self._bounds.rows
        gone = int(bounds[panes] - bounds[0])
        for queue in self._closed:
            queue.drop(gone)
        self._bounds.drop(panes)
        self._first += panes
        for index in self._indices:
            index.expire(self._first)
        self._sliding = None
        self._codes.compact(
            lambda: np.unique(np.concatenate([self._entry_codes.rows, *(one.codes for one in self._open)]))
        )

    def select(self, live: Ints) -> None:
        """Renumber the groups of all entries."""
        new = np.zeros(int(live[-1]) + 1 if len(live) else 1, np.int64)
        new[live] = np.arange(len(live))
        for groups in (self._groups.rows, *(one.groups for one in self._open)):
            groups[:] = new[groups]
        self._forget_derived()

    def _translate(self, old: Ints, new: Ints) -> None:
        for codes in (self._entry_codes.rows, *(one.codes for one in self._open)):
            codes[:] = new[np.searchsorted(old, codes)]
        self._forget_derived()

    @property
    def _closed(self) -> tuple[Queue, Queue, Queue]:
        return self._groups, self._entry_codes, self._counts

    @property
    def _indices(self) -> tuple[FrequencyIndex, FrequencyIndex]:
        return self._values, self._last_panes

    def _forget_derived(self) -> None:
        """Groups or codes are not what they were."""
        self._sliding = None
        for index in self._indices:
            index.forget()

    # -- answers --------------------------------------------------------------------------------------------------

    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """From an index for few rows over long windows, else by sliding; questions of one lookup share the sliding."""
        entries = self._groups.rows, self._entry_codes.rows, self._counts.rows
        bounds = self._bounds.rows - self._bounds.rows[0]
        if self._sliding is None or self._sliding.windows is not windows:
            self._sliding = Sliding(windows, bounds[windows.first], bounds[windows.last], entries)
        counted: Counted = self._sliding
        if not slides_only(ask, self.store.kind):
            index = self._values if is_quantile(ask) else self._last_panes
            if index.worth(len(windows.present), self._sliding.moved, len(bounds) - 1, len(self._groups)):
                counted = Indexed(windows, self._first, index.caught_up(self._first, bounds, entries))
        return answer(counted, ask, self._codes)

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All entries, open ones settled; an index is made again when it is worth it."""
        arrays: dict[str, Any] = {"bounds": self._bounds.rows - self._bounds.rows[0]}
        arrays |= {"groups": self._groups.rows, "codes": self._entry_codes.rows, "counts": self._counts.rows}
        return arrays | prefixed("open", self._settled().arrays()) | prefixed("values", self._codes.snapshot())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._reset()
        self._bounds.load(numpy_of(arrays["bounds"]))
        for queue, name in zip(self._closed, ("groups", "codes", "counts"), strict=True):
            queue.load(numpy_of(arrays[name]))
        self._open = [Entries.of(within("open", arrays))]
        self._waiting = self._counted = len(self._open[0])
        self._codes.restore(within("values", arrays))
