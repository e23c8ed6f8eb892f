"""The answer as it stands: the rows of an edge, and those that are there at given instants.

Cost: O(changes) per epoch, and O(rows held + rows given) when it is asked. Space: the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windrow.flow.graph import Edge
from windrow.kernels.jit import Ints
from windrow.state.buffer import rows_of
from windrow.state.choice import Strategy, make_buffer
from windrow.state.codes import forget_codes
from windrow.state.rows import Delta, Rows
from windrow.synopses.groups import Groups


class View:
    """Holds the rows of an edge; `add`, `at`, `settle` in each epoch."""

    def __init__(self, edge: Edge, strategy: Strategy) -> None:
        self.schema = edge.schema
        self._buffer = make_buffer(edge.pattern, strategy, edge.schema, int(edge.strict))
        self._groups = Groups([one.type for one in edge.schema]) if edge.strict else None

    def __len__(self) -> int:
        return len(self._buffer)

    def add(self, delta: Delta) -> None:
        """The changes of an epoch."""
        if self._groups is not None and len(delta.cut):
            self._buffer.cut(delta.cut, 0, np.array(self._groups.encode(delta.cut.batch.columns)))
        self._insert(delta.came)

    def _insert(self, rows: Rows) -> None:
        if len(rows):
            codes = [] if self._groups is None else [np.array(self._groups.encode(rows.batch.columns))]
            self._buffer.insert(rows, codes)

    def at(self, instants: Ints) -> tuple[pa.RecordBatch, Ints]:
        """The rows that are there at each of these instants of the epoch (ascending), and offsets[i] where i begins."""
        slots = self._buffer.scan()
        if len(instants) == 1:
            alive = (self._buffer.ts[slots] <= instants[0]) & (self._buffer.exp[slots] > instants[0])
            chosen = slots[alive]
            return self._buffer.batch(chosen), np.array([0, len(chosen)])
        first = np.searchsorted(instants, self._buffer.ts[slots])
        behind = np.searchsorted(instants, self._buffer.exp[slots])
        counts = np.maximum(behind - first, 0)
        places = np.repeat(np.arange(len(slots)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        which = first[places] + within
        order = np.argsort(which, kind="stable")
        offsets = np.searchsorted(which[order], np.arange(len(instants) + 1))
        return self._buffer.batch(slots[places[order]]), offsets

    def settle(self, upto: int) -> None:
        """The epoch is over."""
        self._buffer.expire(upto)
        self._buffer.settle()
        if self._groups is not None:
            forget_codes(self._groups, [(self._buffer, 0)])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self._buffer.nbytes + (0 if self._groups is None else self._groups.nbytes)

    def describe(self) -> str:
        """How the rows are held."""
        return self._buffer.describe()

    def snapshot(self) -> dict[str, pa.Table]:
        """The rows."""
        return {"view": self._buffer.snapshot()}

    def restore(self, tables: Mapping[str, pa.Table]) -> None:
        """Become what `snapshot` gave."""
        self._insert(rows_of(tables["view"], self.schema))
        self._buffer.settle()
