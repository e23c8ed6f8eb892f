"""A query over the results of a join, and what results are, for the axis that it looks at."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windrow.errors import QueryError
from windrow.flow.leaves import BEGINNING
from windrow.joined.shape import JoinShape
from windrow.kernels.jit import Ints
from windrow.operators.answer import AnswerRows
from windrow.sharing.member import Term
from windrow.windows.due import first_due


@dataclass(eq=False)
class Asker:
    """A query over the results: its windows, how its answers are made, and what it has been answered so far."""

    name: str
    shape: JoinShape
    rows: AnswerRows
    terms: tuple[Term, ...]
    since: int
    """Results with a tuple at or before this are not for it."""
    upto: int = BEGINNING
    """Its last due time."""
    out: list[pa.RecordBatch] = field(default_factory=list)
    error: QueryError | None = None

    @property
    def needed(self) -> int | None:
        """Nothing that expires up to here, on its axis, is looked at again; None while that is not known."""
        if self.upto == BEGINNING:
            return None if self.since == BEGINNING else self.since
        return first_due(self.upto + 1, self.shape.plan.slide) - self.shape.length

    @property
    def window(self) -> tuple[int, int]:
        """Queries with the same look at the same results when they are due."""
        return self.shape.length, self.since


@dataclass(frozen=True)
class Results:
    """Results of the join in the order in which they came, with both timestamps."""

    batch: pa.RecordBatch
    birth: Ints
    left: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.birth)


@dataclass
class Saved:
    """What queries with the same panes did not do each for itself; counted as it happens."""

    updates: int = 0
    lookups: int = 0
