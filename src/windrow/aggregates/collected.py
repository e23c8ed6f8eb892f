"""A component that is no fixed number of words: all values of a pane, or a sketch of them, kept in a collection.

Several aggregates on one value column share a collection: MEDIAN, COUNT(DISTINCT) and TOP_K all look at the same
frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates.component import Component, Kind
from windrow.kernels.jit import Codes, Ints

Parameters: TypeAlias = "tuple[int | float | bool | str, ...]"


@dataclass(frozen=True)
class Store:
    """Which collection to keep of values of which type: its name in `synopses.collections`, and its parameters."""

    name: str
    kind: pa.DataType
    parameters: Parameters = ()


@dataclass(frozen=True)
class Question:
    """What a lookup asks of a collection, for every window and group; the answers have this type."""

    name: str
    type: pa.DataType
    parameters: Parameters = ()
    size: int = 8
    """About how many bytes an answer has at most, if it is a great one."""


@dataclass(frozen=True)
class Collected(Component):
    """Kept in a collection and answered by it: the single word of a lookup is the Arrow array of answers."""

    store: Store
    question: Question

    op: ClassVar[int] = -1
    dtypes: ClassVar[tuple[Any, ...]] = ()
    kind: ClassVar[Kind] = Kind.HOLISTIC

    @property
    def name(self) -> str:  # type: ignore[override]
        """Both, for snapshots and messages."""
        parts = (self.store.name, *self.store.parameters, self.question.name, *self.question.parameters)
        return ":".join(map(str, parts))

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        """Collections take (slot, group, value), not cells of words."""
        raise NotImplementedError(self.store.name)
