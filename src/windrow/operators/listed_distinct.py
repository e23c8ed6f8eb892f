"""DISTINCT with lists (thesis 2.2.2, strategy DIRECT): all of the input is held, and all of the output.

The measured baseline for δ* (`distinct.py`), with the same answers: when the copy in the output ends, the input is
asked for another one. Both lists are scanned for what expired. Cost per epoch: O(input held + output held), and the
copies of the rows that end; space: the whole input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Codes, Ints, frozen
from windrow.kernels.replacements import choose_copies
from windrow.operators.operator import Operator
from windrow.state.buffer import rows_of
from windrow.state.codes import forget_codes
from windrow.state.listed import Listed
from windrow.state.rows import NEVER, Delta, Epoch, Rows
from windrow.synopses.groups import Groups

EVERY = 1 << 62
"""However many copies there are, all are looked at."""


class ListedDistinct(Operator):
    """Each row once, while a copy of it lives; no negative tuples in or out."""

    name = "distinct"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._groups = Groups([one.type for one in schema])
        self._input = Listed(schema, 1)
        self._output = Listed(schema, 1)

    def step(self, inputs: Sequence[Delta], epoch: Epoch) -> Delta:
        """Rows come, and copies stand for rows that are new or whose copy in the output has ended."""
        (delta,) = inputs
        codes = self._hold(self._input, delta.came)
        ended = self._output.expire(epoch.upto)
        new = np.unique(codes)
        shown, _ = self._output.probe(0, new, EVERY)
        new = np.delete(new, shown)
        open_ = np.concatenate([new, self._output.coded(0, ended)])
        since = np.concatenate([np.full(len(new), epoch.since), self._output.exp[ended]])
        came = self._replaced(open_, since, epoch.upto) if len(open_) else self.nothing
        self._output.settle()
        self._hold(self._output, came.filter(came.exp > epoch.upto))
        for buffer in (self._input, self._output):
            buffer.expire(epoch.upto)
            buffer.settle()
        forget_codes(self._groups, [(self._input, 0), (self._output, 0)])
        return Delta(came, self.nothing)

    def _hold(self, buffer: Listed, rows: Rows) -> Codes:
        if not len(rows):
            return np.empty(0, np.int32)
        codes = np.array(self._groups.encode(rows.batch.columns))
        buffer.insert(rows, [codes])
        return codes

    def _replaced(self, codes: Codes, since: Ints, upto: int) -> Rows:
        """What stands for these rows from then on."""
        which, slots = self._input.probe(0, codes, EVERY)
        firsts = np.searchsorted(which, np.arange(len(codes) + 1))
        ts, exp = (frozen(array[slots]) for array in (self._input.ts, self._input.exp))
        most = len(slots) + len(codes)
        chosen, begins = choose_copies(firsts, frozen(since), ts, exp, min(upto, NEVER - 1), most)
        if not len(chosen):
            return self.nothing
        return Rows(self._input.batch(slots[chosen]), begins, exp[chosen])

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self._groups.nbytes + self._input.nbytes + self._output.nbytes

    @property
    def rows(self) -> int:
        """The rows of the input and of the output."""
        return len(self._input) + len(self._output)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """Both lists."""
        return {}, {"input": self._input.snapshot(), "output": self._output.snapshot()}

    def restore(self, meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Both lists."""
        for name, buffer in (("input", self._input), ("output", self._output)):
            self._hold(buffer, rows_of(tables[name], self.schema))
            buffer.settle()

    def describe(self) -> str:
        """For EXPLAIN."""
        return "lists of the whole input and output, scanned for expired rows"
