"""The contract of the operators of continuous queries: the changes of an epoch in, the changes of its output out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from windrow.state.rows import Delta, Epoch, Rows


class Operator(ABC):
    """One node of a running plan. Epochs follow each other without gaps; all state is between them."""

    name: ClassVar[str]
    schema: pa.Schema
    """The columns of its output."""
    stateless: ClassVar[bool] = False
    """Whether nothing comes out of an epoch in which nothing comes in: such a step is left out."""

    @cached_property
    def nothing(self) -> Rows:
        """No rows of its output."""
        return Rows.none(self.schema)

    @abstractmethod
    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """What the changes of the inputs in this epoch make of the output, left to right."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return 0

    @property
    def rows(self) -> int:
        """Rows held in state."""
        return 0

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """A JSON-able dict and named tables: all that later steps depend on."""
        return {}, {}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:  # noqa: B027 - many keep nothing
        """Become what `snapshot` gave, in an operator made from the same plan."""

    def describe(self) -> str:
        """For EXPLAIN: what is kept, and in which order it expires."""
        return ""
