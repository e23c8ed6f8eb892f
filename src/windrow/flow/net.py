"""What is left of rows that come and go when equal ones cancel at each instant.

Cost: one hash of each row, and a sort by time.
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
SIGNS = pa.array(["-", "+"])
FEW = 4096
"""So many changes are worth a look at their times."""
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
        comes = (self.copies > 0).astype(np.int8)
        order = np.lexsort((comes, self.times))
        places = np.repeat(order, np.abs(self.copies[order]))
        batch = self.batch.take(pa.array(places))
        words = SIGNS.take(pa.array(comes[places]))
        return pa.RecordBatch.from_arrays([words, *batch.columns], schema=schema), self.times[places]


def netted(parts: Sequence[Part], schema: pa.Schema, known: Groups | None = None) -> Net:
    """The net changes; rows of one part do not cancel each other.

    `known` is a `dictionary` that may be used again: what is in it does no harm.
    """
    if not parts:
        return Net(empty_batch(schema), np.empty(0, np.int64), np.empty(0, np.int64))
    batch = parts[0][0] if len(parts) == 1 else one_batch([part for part, _, _ in parts], schema)
    times = np.concatenate([when for _, when, _ in parts])
    copies = np.concatenate([np.full(len(when), sign, np.int64) for _, when, sign in parts])
    if len({sign for _, _, sign in parts}) == 1 or (len(times) < FEW and not _meet(parts)):
        order = np.argsort(times, kind="stable")
        return Net(batch.take(pa.array(order)), times[order], copies[order])
    codes = (dictionary(schema) if known is None else known).encode([*batch.columns, pa.array(times)])
    total = np.bincount(codes, copies).astype(np.int64)
    first = np.empty(len(total), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    # In the order of the batch, and then of time: codes of earlier epochs must not decide it.
    places = np.sort(first[np.flatnonzero(total)], kind="stable")
    places = places[np.argsort(times[places], kind="stable")]
    return Net(batch.take(pa.array(places)), times[places], total[codes[places]])


def dictionary(schema: pa.Schema) -> Groups:
    """Codes of rows and instants."""
    return Groups([*(one.type for one in schema), pa.int64()])


def _meet(parts: Sequence[Part]) -> bool:
    """Whether rows come and go at one instant: only then something may cancel out."""
    came, gone = ([when for _, when, sign in parts if sign == side] for side in (1, -1))
    times = np.sort(np.concatenate(came))
    ends = np.concatenate(gone)
    return bool((np.searchsorted(times, ends, side="left") < np.searchsorted(times, ends, side="right")).any())
