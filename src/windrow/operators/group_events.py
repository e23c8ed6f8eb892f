"""The events of an epoch as a group-by sees them, and the contract of what it keeps for its aggregates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.columns import validity
from windrow.expressions import Program
from windrow.kernels.changes import Flags
from windrow.kernels.jit import Codes, Ints
from windrow.state.held_rows import HeldRows

Part: TypeAlias = "tuple[Component, Program | None]"
"""A component of an aggregate, and the value that it takes."""


@dataclass(frozen=True, eq=False)
class Events:
    """One entry per event, in any order; cells (group, instant) are in the order of group and time."""

    sign: NDArray[np.int8]
    """+1 where a row begins (or an end is taken back), -1 where one ends, 0 where only an answer is asked for."""
    slots: Ints
    """Where the row of each event is held; empty when nobody needs to know."""
    values: Mapping[Program, pa.Array]
    by_cell: Ints
    """The events in the order of cells."""
    cells: Codes
    """The cell of each event."""
    groups: Codes
    """Of each cell."""
    times: Ints
    """Of each cell."""

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.groups)

    def valid(self, program: Program | None) -> Flags:
        """The events that count for a value: it is not NULL."""
        there: Flags = self.sign != 0
        valid = None if program is None else validity(self.values[program])
        return there if valid is None else there & valid


class Kept(ABC):
    """State of some parts for every group: the events of an epoch in, the words of each part at every cell out."""

    parts: tuple[Part, ...]
    kind: str
    """In EXPLAIN."""

    @abstractmethod
    def step(self, events: Events) -> Mapping[Part, tuple[Any, ...]]:
        """The typed words of the parts, one entry per cell."""

    @abstractmethod
    def grow(self, groups: int, slots: int) -> None:
        """Make room for so many groups and slots of held rows."""

    @abstractmethod
    def keep(self, live: Ints) -> None:
        """Group live[k] becomes k; the others are forgotten."""

    def settle(self, held: HeldRows) -> None:  # noqa: B027 - most have nothing to do
        """The epoch is over: forget what the rows that are left do not need."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return 0

    def snapshot(self, groups: int) -> dict[str, Any]:
        """Named arrays: what the held rows do not tell."""
        return {}

    @abstractmethod
    def restore(self, arrays: Mapping[str, Any], held: HeldRows, slots: Ints, values: Mapping[Program, Any]) -> None:
        """Become what `snapshot` gave; the held rows that live are in these slots, with these values."""
