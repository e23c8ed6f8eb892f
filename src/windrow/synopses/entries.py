"""Counted values: flat arrays of (pane, group, code of the value, count)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.kernels.counting import add_counts, number_pairs
from windrow.kernels.jit import Ints
from windrow.kernels.radix import order_pairs
from windrow.synopses.snapshot import numpy_of

SAMPLE = 2048


@dataclass(frozen=True)
class Entries:
    """Four arrays of the same length."""

    panes: Ints
    groups: Ints
    codes: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: Any) -> Entries:
        return Entries(*(array[part] for array in self.arrays().values()))

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(int(array.nbytes) for array in self.arrays().values())

    def arrays(self) -> dict[str, Ints]:
        """By name, for snapshots."""
        return {"panes": self.panes, "groups": self.groups, "codes": self.codes, "counts": self.counts}

    @classmethod
    def none(cls) -> Entries:
        """No entries."""
        return cls(*(np.empty(0, np.int64) for _ in range(4)))

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Entries:
        """The inverse of `arrays`."""
        return cls(*(numpy_of(arrays[name]) for name in ("panes", "groups", "codes", "counts")))

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """One after the other."""
        if not parts:
            return cls.none()
        return cls(
            *(np.concatenate(arrays) for arrays in zip(*(part.arrays().values() for part in parts), strict=True))
        )

    def in_panes(self, names: Ints) -> Entries:
        """The same entries with names[pane] for each pane."""
        return Entries(names[self.panes], self.groups, self.codes, self.counts)

    def copy(self) -> Entries:
        """Of its own memory."""
        return Entries(*(array.copy() for array in self.arrays().values()))

    def counted(self) -> Entries:
        """Sorted by pane, group and code, each once, with the sum of its counts: O(n), since it counts digits."""
        cells = (self.panes << 32) | self.groups
        if self._mostly_different(cells):
            order = order_pairs(cells, self.codes)
            fresh = np.ones(len(order), np.bool_)
            fresh[1:] = (np.diff(self.codes[order]) != 0) | (np.diff(cells[order]) != 0)
            at = np.flatnonzero(fresh)
            firsts = order[at]
            sums = np.add.reduceat(self.counts[order], at)
            return Entries(self.panes[firsts], self.groups[firsts], self.codes[firsts], sums)
        numbers = np.empty(len(self), np.int32)
        firsts, many = number_pairs(cells, self.codes, numbers)
        sums = np.zeros(many, np.int64)
        add_counts(numbers, self.counts, sums)
        order = order_pairs(cells[firsts], self.codes[firsts])
        firsts = firsts[order]
        return Entries(self.panes[firsts], self.groups[firsts], self.codes[firsts], sums[order])

    def _mostly_different(self, cells: Ints) -> bool:
        """Whether some entries, taken at even distances, are nearly all different: then hashing them saves nothing."""
        step = len(self) // SAMPLE
        if not step:
            return False
        some = Entries(cells[::step], cells[::step], self.codes[::step], self.counts[::step])
        order = np.lexsort((some.codes, some.panes))
        same = (np.diff(some.codes[order]) == 0) & (np.diff(some.panes[order]) == 0)
        return int(same.sum()) * 8 < len(some)
