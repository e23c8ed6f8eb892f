"""What is left of rows that come and go when equal ones cancel at each instant.

Cost: O(n log n) for n rows, and one hash of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.state.rows import empty_batch, one_batch
from windrow.synopses.groups import Groups

CHANGE = "_change"
Part: TypeAlias = tuple[pa.RecordBatch, Ints, int]
"""Rows, when they come or go, and which of both (1 or -1)."""


@dataclass(frozen=True, eq=False)
class Net:
    """Rows with the instant and the number of copies that come (positive) or go (negative), in the order of time."""

    batch: pa.RecordBatch
    times: Ints
    copies: Ints

    def __len__(self) -> int:
        return len(self.times)

    def side(self, sign: int) -> tuple[pa.RecordBatch, Ints]:
        """The rows that come (1) or go (-1), copy by copy, and when."""
        chosen = np.flatnonzero(self.copies * sign > 0)
        places = np.repeat(chosen, np.abs(self.copies[chosen]))
        return self.batch.take(pa.array(places)), self.times[places]

    def signed(self, schema: pa.Schema) -> tuple[pa.RecordBatch, Ints]:
        """Copy by copy behind a column `_change`, and when; what goes stands before what comes at the same instant."""
        gone, went = self.side(-1)
        new, came = self.side(1)
        times = np.concatenate([went, came])
        signs = np.concatenate([np.zeros(len(went), np.int8), np.ones(len(came), np.int8)])
        order = np.lexsort((signs, times))
        batch = one_batch([gone, new], self.batch.schema).take(pa.array(order))
        words = pa.array(["-", "+"]).take(pa.array(signs[order]))
        return pa.RecordBatch.from_arrays([words, *batch.columns], schema=schema), times[order]


def netted(parts: Sequence[Part], schema: pa.Schema) -> Net:
    """The net changes; rows of one part do not cancel each other."""
    if not parts:
        return Net(empty_batch(schema), np.empty(0, np.int64), np.empty(0, np.int64))
    batch = parts[0][0] if len(parts) == 1 else one_batch([part for part, _, _ in parts], schema)
    times = np.concatenate([when for _, when, _ in parts])
    copies = np.concatenate([np.full(len(when), sign, np.int64) for _, when, sign in parts])
    if len(parts) == 1:
        order = np.argsort(times, kind="stable")
        return Net(batch.take(pa.array(order)), times[order], copies[order])
    codes = Groups([one.type for one in schema]).encode(batch.columns)
    order = np.lexsort((codes, times))
    times, codes = times[order], codes[order]
    first = np.flatnonzero(np.append(True, (times[1:] != times[:-1]) | (codes[1:] != codes[:-1])))
    total = np.add.reduceat(copies[order], first)
    left = total != 0
    chosen = first[left]
    return Net(batch.take(pa.array(order[chosen])), times[chosen], total[left])
