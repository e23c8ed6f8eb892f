"""Answers from frequency counts without looking at the window's entries: sorted runs over base intervals of panes.

Two indices, each made when it is first worth it: values in order, for quantiles (B-INT-QNT; 002, section 3.3), and for
COUNT and SUM DISTINCT, entries in the order of the pane in which the same value of the same group came last: the
entries of a window whose last pane is before the window are its different values. A lookup costs O(log² W) per row,
whatever the window; an entry costs O(log panes) once.

When are they used? A lookup with few rows over long windows is answered from the index, one with many windows by
sliding (`sliding`): the estimates of both are compared, in `worth`. An index is made after sliding has cost as much
more than it as making it will cost; TOP_K, MODE and sums of floats always slide.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.counting import note_panes
from windrow.kernels.jit import Ints
from windrow.synopses.collection import Windows
from windrow.synopses.sorted_runs import SortedRuns

MOVE = 8
"""What an entry that moves costs beside a step of a binary search."""
PATIENCE = 8
"""What making an index costs for each entry and level, likewise."""
FEWEST_SLOTS = 1024


class FrequencyIndex:
    """Sorted runs of one kind over the closed panes of `Frequencies`; a pane's number never changes."""

    def __init__(self, *, by_last_pane: bool) -> None:
        self._by_last_pane = by_last_pane
        self._runs: SortedRuns | None = None
        self._wasted = 0
        self._table: Ints = np.zeros((0, 3), np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._table.nbytes) + (0 if self._runs is None else self._runs.nbytes)

    def worth(self, rows: int, moved: int, panes: int, entries: int) -> bool:
        """Whether to answer so many rows from the index, rather than move so many entries."""
        levels = max(panes, 1).bit_length()
        saved = MOVE * moved - rows * levels * levels
        if saved <= 0:
            return False
        if self._runs is None:
            self._wasted += saved
        return self._runs is not None or self._wasted > PATIENCE * entries * levels

    def forget(self) -> None:
        """Groups or codes have other numbers: the index is made anew when it is worth it."""
        self._runs, self._wasted, self._used = None, 0, 0
        self._table = np.zeros((0, 3), np.int64)

    def expire(self, first: int) -> None:
        """Panes before this one have left; an index that nobody has asked since then is given up."""
        if self._runs is not None:
            if self._runs.end <= first:
                self.forget()
            else:
                self._runs.expire(first - self._runs.first)

    def caught_up(self, first: int, bounds: Ints, entries: tuple[Ints, Ints, Ints]) -> SortedRuns:
        """The runs with all closed panes: pane `first + i` has the entries bounds[i] .. bounds[i+1]-1."""
        if self._runs is None:
            self._runs = SortedRuns(first, weights=3 if self._by_last_pane else 1)
        runs, panes = self._runs, first + len(bounds) - 1
        if runs.end < panes:
            new = bounds[runs.end - first :]
            groups, codes, counts = (part[int(new[0]) : int(new[-1])] for part in entries)
            lengths = np.diff(new)
            if self._by_last_pane:
                pane = np.repeat(np.arange(runs.end, panes), lengths)
                last = self._last_panes(groups, codes, pane, runs.first)
                order = np.lexsort((last, groups, pane))
                groups, codes, last = groups[order], codes[order], last[order]
                weights = np.stack([np.ones(len(codes), np.int64), codes & 0xFFFFFFFF, codes >> 32])
                runs.append(lengths, groups, last, weights)
            else:
                runs.append(lengths, groups, codes, counts[None, :])
        return runs

    def _last_panes(self, groups: Ints, codes: Ints, panes: Ints, oldest: int) -> Ints:
        """The pane in which the same value of the same group came last, -1 for none; notes these panes."""
        last = np.empty(len(codes), np.int64)
        done = 0
        while done < len(codes):
            if 2 * self._used >= len(self._table):
                self._enlarge(len(codes) - done, oldest)
            done, self._used = note_panes(self._table, self._used, done, groups, codes, panes, last)
        return last

    def _enlarge(self, more: int, oldest: int) -> None:
        """A new table, without the values that are in no pane any more."""
        kept = np.ascontiguousarray(self._table[self._table[:, 2] > oldest])
        size = FEWEST_SLOTS
        while size < 4 * (len(kept) + min(more, len(kept) + FEWEST_SLOTS)):
            size *= 2
        self._table = np.zeros((size, 3), np.int64)
        groups, codes, panes = (np.ascontiguousarray(column) for column in kept.T)
        _, self._used = note_panes(self._table, 0, 0, groups, codes, panes - 1, np.empty(len(kept), np.int64))


class Indexed:
    """The answers of one lookup from the sorted runs; the pane first + i is closed pane i of the windows."""

    def __init__(self, windows: Windows, first: int, runs: SortedRuns) -> None:
        present = np.ascontiguousarray(windows.present, np.int32)
        self._runs = runs
        self._where = windows.first + first, windows.last + first, windows.offsets, present

    @property
    def totals(self) -> Ints:
        """How many values each row has."""
        return self._runs.totals(*self._where)

    @property
    def distinct(self) -> tuple[Ints, Ints, Ints]:
        """How many different values each row has, and the sums of the low and high halves of their codes."""
        count, low, high = self._runs.below(*self._where)
        return count, low, high

    def select(self, positions: Ints) -> Ints:
        """The codes at positions [k, rows] of each row's sorted values; 0 where the position is 0."""
        return self._runs.select(*self._where, positions)
