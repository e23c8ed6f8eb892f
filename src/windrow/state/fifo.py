"""FIFO queue: rows end in the order in which they came (WKS, thesis 3.5.2).

expire: the rows that leave the front of the queue, and one more. No space beyond the rows. Rows that never end (MON)
may stand in it too, as the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Codes, Ints
from windrow.kernels.state import due_in_order
from windrow.state.buffer import EXP, Buffer
from windrow.state.rows import Rows


class OutOfOrder(AssertionError):
    """A row that would end before one that came earlier: the plan called the edge WKS, and it is not."""


class Fifo(Buffer):
    """Rows whose exp never decreases from one to the next."""

    def _clear(self) -> None:
        super()._clear()
        self._front = 0
        self._last: int | None = None  # the greatest exp that came

    def describe(self) -> str:
        """For EXPLAIN."""
        return "FIFO queue"

    def insert(self, rows: Rows, codes: Sequence[Codes] = ()) -> Ints:
        """Hold these rows, which end no earlier than all that came before, each no earlier than the one above."""
        if len(rows):
            least = int(rows.exp[0])
            if (self._last is not None and least < self._last) or bool((rows.exp[1:] < rows.exp[:-1]).any()):
                raise OutOfOrder(
                    f"expected rows that end in the order in which they come, found an end at {int(rows.exp.min())} "
                    f"after one at {max(int(rows.exp.max()), self._last or least)} in a FIFO queue; this edge needs "
                    "a calendar queue (pattern WK), or its rows sorted by their ends"
                )
            self._last = int(rows.exp[-1])
        return super().insert(rows, codes)

    def restore(self, table: pa.Table, codes: Sequence[Codes] = ()) -> None:
        """Hold exactly the rows of a snapshot; a cut row may stand behind one that ends later."""
        order = np.argsort(table[EXP].to_numpy(), kind="stable")
        super().restore(table.take(pa.array(order)), [given[order] for given in codes])

    def _came(self, base: int, stop: int) -> None:
        pass

    def _due(self, upto: int) -> Ints:
        ended, self._front = due_in_order(self._front, self._used, upto, self.exp, self._state)
        return ended

    def _renumbered(self) -> None:
        self._front = 0
