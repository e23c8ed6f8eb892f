"""The strings under MIN and MAX in a share group: an order of labels per value column (`ranks`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.synopses.ranks import TextRanks
from windrow.synopses.snapshot import prefixed, within

Stored: TypeAlias = Callable[[int], list[Ints]]
"""The arrays of the panes that hold labels of a column, to be changed in place."""


class TextLabels:
    """By value column; a column has an order from its first string on."""

    def __init__(self) -> None:
        self._ranks: dict[int, TextRanks] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def __getitem__(self, column: int) -> TextRanks:
        return self._ranks[column]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.nbytes for one in self._ranks.values())

    def encode(self, column: int, strings: pa.Array, stored: Stored) -> Ints:
        """The labels of strings; those in the panes are translated when they change."""

        def translate(old: Ints, new: Ints) -> None:
            for words in stored(column):
                place = np.minimum(np.searchsorted(old, words), len(old) - 1)
                np.copyto(words, new[place], where=old[place] == words)

        return self._ranks.setdefault(column, TextRanks(strings.type)).encode(strings, translate)

    def decode(self, column: int, labels: Ints) -> pa.Array:
        """The strings behind labels; NULL for what is none."""
        ranks = self._ranks.get(column)
        return pa.nulls(len(labels), pa.string()) if ranks is None else ranks.decode(labels)

    def purge(self, stored: Stored, spare_dead: int) -> None:
        """Forget strings that are in no pane, if they are more than `spare_dead`."""
        for column, ranks in self._ranks.items():
            live = np.unique(np.concatenate([np.unique(words) for words in stored(column)]))
            if len(ranks) - len(live) > min(spare_dead, len(ranks) // 2):
                ranks.compact(live)

    def keep(self, column_of: Mapping[int, int]) -> None:
        """Forget all columns but these, which get other numbers."""
        self._ranks = {column_of[column]: ranks for column, ranks in self._ranks.items() if column in column_of}

    def snapshot(self) -> tuple[dict[int, str], dict[str, Any]]:
        """The type of each column, and named arrays."""
        arrays: dict[str, Any] = {}
        for column, ranks in self._ranks.items():
            arrays |= prefixed(f"ranks.{column}", ranks.snapshot())
        return {column: str(ranks.kind) for column, ranks in self._ranks.items()}, arrays

    def restore(self, kinds: Mapping[str, str], arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._ranks = {}
        for column, kind in kinds.items():
            self._ranks[int(column)] = TextRanks(pa.type_for_alias(kind))
            self._ranks[int(column)].restore(within(f"ranks.{column}", arrays))
