"""Rows with lifetimes: what flows between the operators of a continuous query.

A row is in the relation of its plan edge at the instants ts <= τ < exp. Time passes in epochs (since, upto]: the
watermark of the query moves from `since` to `upto`, everything that happens between is known, and each operator turns
the changes of its inputs in that epoch into the changes of its output, all at once. Because every row carries its
lifetime, the result is that of evaluating tuple by tuple (thesis 3.3.1: timestamps decide, not the order of arrival).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.windows.spec import MAX_TICK


@dataclass(frozen=True, eq=False)
class Rows:
    """A batch of rows and their lifetimes [ts, exp); exp is MAX_TICK when nobody knows yet when a row will end."""

    batch: pa.RecordBatch
    ts: Ints
    exp: Ints

    @classmethod
    def none(cls, schema: pa.Schema) -> Rows:
        """No rows at all."""
        return _nothing(schema)

    @classmethod
    def concat(cls, parts: Sequence[Rows], schema: pa.Schema) -> Rows:
        """All rows of several batches with one schema."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none(schema)
        batch = one_batch([part.batch for part in parts], schema)
        return cls(batch, np.concatenate([part.ts for part in parts]), np.concatenate([part.exp for part in parts]))

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def nbytes(self) -> int:
        """Bytes of columns and lifetimes."""
        return int(self.batch.nbytes) + self.ts.nbytes + self.exp.nbytes

    def take(self, places: Any) -> Rows:
        """The rows at these places."""
        return Rows(self.batch.take(pa.array(places)), self.ts[places], self.exp[places])

    def filter(self, kept: Any) -> Rows:
        """The rows where `kept` is True."""
        many = np.count_nonzero(kept)
        if many == len(kept):
            return self
        if not many:
            return Rows(self.batch.slice(0, 0), self.ts[:0], self.exp[:0])
        return Rows(self.batch.filter(pa.array(kept)), self.ts[kept], self.exp[kept])

    def with_batch(self, batch: pa.RecordBatch) -> Rows:
        """Other columns with the same lifetimes."""
        return Rows(batch, self.ts, self.exp)


@dataclass(frozen=True, eq=False)
class Delta:
    """What happens on a plan edge in one epoch (since, upto].

    `came`: rows that begin in the epoch (since < ts <= upto < any exp that is not known to be in the epoch). A row that
    also ends in the epoch comes with that end, and one that would end where it begins does not come.
    `cut`: negative tuples: rows of earlier epochs that end at `ts`, in the epoch, although they were said to live until
    `exp`. A cut row equals a row that came in its columns and its exp; of several such rows any one is meant.
    Edges that are not strict non-monotonic have no cut rows.
    """

    came: Rows
    cut: Rows

    @classmethod
    def none(cls, schema: pa.Schema) -> Delta:
        """Nothing happens."""
        return cls(Rows.none(schema), Rows.none(schema))

    @classmethod
    def of(cls, came: Rows) -> Delta:
        """Rows come, and none is cut."""
        return cls(came, Rows.none(came.batch.schema))

    def __len__(self) -> int:
        return len(self.came) + len(self.cut)


@dataclass(frozen=True)
class Epoch:
    """Time moves from `since` (exclusive) to `upto` (inclusive)."""

    since: int
    upto: int


NEVER = MAX_TICK
"""The exp of a row whose end nobody knows yet."""


@lru_cache(maxsize=1024)
def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows: the same one for equal schemas, since making one costs more than a short epoch may."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


@lru_cache(maxsize=1024)
def _nothing(schema: pa.Schema) -> Rows:
    return Rows(empty_batch(schema), np.empty(0, np.int64), np.empty(0, np.int64))


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Several batches as one; a batch without columns keeps no rows, so edges always have at least one column."""
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    return table.to_batches()[0] if table.num_rows else empty_batch(schema)
