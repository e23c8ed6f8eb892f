"""DISTINCT over rows whose ends are known: δ*, weak non-monotonic duplicate elimination (thesis 3.5.2).

Of all copies of a row only two matter: the one in the output, and the one among the others that lives longest (the
auxiliary output). When the first ends, the second takes its place: every output row has an end that is known when it
comes, and nothing is ever cut. Cost O(rows that come + output rows), amortised; space at most twice the output.
Inputs with negative tuples need `counted.Counted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.errors import StateError
from windrow.kernels.distinct import END, NEXT, NONE, distinct
from windrow.kernels.jit import Ints, frozen
from windrow.operators.operator import Operator
from windrow.state.row_table import RowTable
from windrow.state.rows import NEVER, Delta, Epoch, Rows
from windrow.state.schedule import Schedule

FEW = 1024
"""So many rows of no use are not worth a clean-up."""
_IN_ORDER: Ints = np.empty(0, np.int64)


class Distinct(Operator):
    """Each row once, as long as at least one copy of it is in the input."""

    name: ClassVar[str] = "distinct"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._table = RowTable(schema, (NONE, NONE))
        # Has exactly one entry for each row in the output, unless it ends never.
        self._ends = Schedule()
        self._endless = self._duplicates = 0

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Rows that come where there is none like them, and duplicates that take over."""
        (delta,) = inputs
        if len(delta.cut):
            raise StateError(
                f"δ* takes inputs whose rows end when they said (WKS, WK), and got {len(delta.cut)} negative tuples; "
                "plan the strict form of DISTINCT on this edge"
            )
        came = delta.came
        codes = self._table.encode(came.batch) if len(came) else np.empty(0, np.int64)
        _, ended, _ = self._ends.due(epoch.upto)
        room = len(codes) + len(ended)
        if not room:
            return Delta(self.nothing, self.nothing)
        codes_out, ts_out, exp_out = (np.empty(room, np.int64) for _ in range(3))
        ts = came.ts
        sorted_ = len(ts) < 2 or not (ts[1:] < ts[:-1]).any()
        order = _IN_ORDER if sorted_ else np.argsort(ts, kind="stable")
        count, duplicates = distinct(
            codes,
            frozen(ts),
            frozen(came.exp),
            order,
            ended,
            epoch.upto,
            self._table.words,
            codes_out,
            ts_out,
            exp_out,
        )
        out_codes, out_ts, out_exp = codes_out[:count], ts_out[:count], exp_out[:count]
        self._duplicates += duplicates
        self._endless += int(np.count_nonzero(out_exp == NEVER))
        self._ends.add(out_exp, out_codes)
        result = Rows(self._table.rows(out_codes), out_ts, out_exp) if count else self.nothing
        self._forget()
        return Delta(result, self.nothing)

    @property
    def _live(self) -> int:
        return len(self._ends) + self._endless

    def _live_codes(self) -> Ints:
        return np.flatnonzero(self._table.words[: len(self._table), END] > self._ends.now)

    def _forget(self) -> None:
        """Drop ended rows once they are more than half of the table: O(1) for each of them."""
        if len(self._table) - self._live > max(FEW, self._live):
            self._ends.rename(self._table.keep(self._live_codes()))

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._table.nbytes + self._ends.nbytes

    @property
    def rows(self) -> int:
        """Rows in the output, and duplicates that will take over."""
        return self._live + self._duplicates

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rows in the output, with their two ends."""
        return {"now": self._ends.now}, {"rows": self._table.table(self._live_codes())}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """The schedule follows from the ends."""
        codes = self._table.load(tables["rows"])
        words = self._table.words[codes]
        self._ends.load(int(meta["now"]), words[:, END], codes, 0)
        self._endless = int(np.count_nonzero(words[:, END] == NEVER))
        self._duplicates = int(np.count_nonzero(words[:, NEXT] != NONE))

    def describe(self) -> str:
        """For EXPLAIN."""
        return "δ*: each distinct row and its longest-living duplicate, expired by a schedule of their ends"
