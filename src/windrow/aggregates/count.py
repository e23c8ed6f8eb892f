"""Counts: of rows, and of values that are not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from windrow.aggregates.component import Subtractable
from windrow.kernels import combine
from windrow.kernels.accumulate import count_slots
from windrow.kernels.jit import Codes, Ints


@dataclass(frozen=True)
class Count(Subtractable):
    """How many values are not NULL."""

    name = "count"
    op = combine.ADD

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """One per cell named."""
        count_slots(cells, words[0])


@dataclass(frozen=True)
class CountRows(Count):
    """How many rows there are; also tells which groups are in a window."""

    name = "count_rows"
