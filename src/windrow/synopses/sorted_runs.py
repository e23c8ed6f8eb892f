"""Base intervals with sorted runs (B-INT-QNT; 002, sections 3.1.1 and 3.3): order statistics of any window.

For every 2**l panes that begin at a multiple of 2**l, the entries of these panes in order of group and key, with
running sums of their weights. Update O(log panes) amortised per entry; a quantile O(log² W · log log W); a sum over all
keys below a bound O(log² W), where W is the number of the window's entries. Space O(entries · log panes).
"""

from __future__ import annotations

import numpy as np

from windrow.kernels import runs
from windrow.kernels.jit import Codes, Ints

FEWEST_ENTRIES = 256


class SortedRuns:
    """Panes are numbered from `first` on; panes come at the end and leave at the front."""

    def __init__(self, first: int = 0, *, weights: int = 1, grouped: bool = True) -> None:
        self.first = first
        """The oldest pane that is kept."""
        self._grouped = grouped
        self._weights = weights
        # The pane that _bounds[0] belongs to; some of the first entries may be of panes that have left.
        self._origin = first
        self._bounds: Ints = np.zeros(FEWEST_ENTRIES, np.int64)
        self._count = 0
        self._done: Ints = np.zeros(64, np.int64)
        self._levels = 1
        self._keys, self._groups, self._sums = self._blank(1, FEWEST_ENTRIES)

    @property
    def panes(self) -> int:
        """How many panes are kept."""
        return self.end - self.first

    @property
    def end(self) -> int:
        """The pane that comes next."""
        return self._origin + self._count

    @property
    def levels(self) -> int:
        """How many levels there are runs of: a window is made of at most two runs of each."""
        return self._levels

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._keys.nbytes + self._groups.nbytes + self._sums.nbytes + self._bounds.nbytes)

    def append(self, lengths: Ints, groups: Ints | None, keys: Ints, weights: Ints) -> None:
        """The next panes: lengths[i] entries of pane i in order of group and key, with weights [weight, entry]."""
        self._reserve(len(lengths), len(keys))
        stop = int(self._bounds[self._count])
        ends = np.cumsum(lengths)
        self._bounds[self._count + 1 : self._count + 1 + len(lengths)] = stop + ends
        whole = slice(stop, stop + len(keys))
        self._keys[0, whole] = keys
        if self._grouped and groups is not None:
            self._groups[0, whole] = groups
        sums = np.cumsum(weights, axis=1)
        # The sum begins anew with each pane.
        before = np.concatenate([np.zeros((self._weights, 1), np.int64), sums], axis=1)[:, ends - lengths]
        self._sums[:, 0, whole] = sums - np.repeat(before, lengths, axis=1)
        self._count += len(lengths)
        bounds = self._bounds[: self._count + 1]
        runs.merge_levels(
            self._keys, self._groups, self._sums, self._levels, bounds, self._origin, self.first, self._done
        )

    def expire(self, panes: int) -> None:
        """Forget the first so many panes; the memory is used again when the next ones come."""
        self.first += panes

    def totals(self, first: Ints, last: Ints, offsets: Ints, present: Codes) -> Ints:
        """The sum of weight 0 over panes first[w] .. last[w]-1 and group present[r], for rows r of window w."""
        return runs.totals(self._arrays(), (first, last, offsets, present))

    def below(self, first: Ints, last: Ints, offsets: Ints, present: Codes) -> Ints:
        """All weights [weight, rows], over the entries with a key below first[w]."""
        return runs.below(self._arrays(), (first, last, offsets, present))

    def select(self, first: Ints, last: Ints, offsets: Ints, present: Codes, positions: Ints) -> Ints:
        """The keys at positions [k, rows] in the order of keys: weight 0 is how often an entry is there."""
        return runs.select(self._arrays(), (first, last, offsets, present), positions)

    def _arrays(self) -> runs.Runs:
        bounds = self._bounds[: self._count + 1]
        return self._keys, self._groups, self._sums, self._levels, bounds, self._origin

    def _blank(self, levels: int, entries: int) -> tuple[Ints, Ints, Ints]:
        keys = np.empty((levels, entries), np.int64)
        groups = np.empty((levels, entries if self._grouped else 0), np.int64)
        return keys, groups, np.empty((self._weights, levels, entries), np.int64)

    def _reserve(self, panes: int, entries: int) -> None:
        """Room for more panes and entries, and for the levels that all panes are enough for."""
        gone = self.first - self._origin
        dead, stop = int(self._bounds[gone]), int(self._bounds[self._count])
        live, levels = stop - dead, max(self._levels, (self.panes + panes).bit_length())
        bounds: Ints = self._bounds
        if self._count + panes + 1 > len(bounds) or (gone > FEWEST_ENTRIES and 2 * gone > self._count):
            bounds = np.zeros(max(2 * (self.panes + panes + 1), FEWEST_ENTRIES), np.int64)
            bounds[: self.panes + 1] = self._bounds[gone : self._count + 1] - dead
        elif stop + entries <= self._keys.shape[1] and levels == self._levels:
            return
        else:
            bounds[: self.panes + 1] = bounds[gone : self._count + 1] - dead
        keys, sums, groups = self._keys, self._sums, self._groups
        size = max(2 * (live + entries), FEWEST_ENTRIES)
        self._keys, self._groups, self._sums = self._blank(levels, size)
        self._keys[: self._levels, :live] = keys[:, dead:stop]
        self._sums[:, : self._levels, :live] = sums[:, :, dead:stop]
        if self._grouped:
            self._groups[: self._levels, :live] = groups[:, dead:stop]
        self._bounds, self._count, self._origin = bounds, self.panes, self.first
        self._levels = levels
