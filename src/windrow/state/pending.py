"""Tuples that wait until the watermark has passed the instant at which they begin to count, or to have a number.

Space: what is above the watermark (of the slowest stream, for a query over several): the tuples of one LATENESS and of
the newest instant, and the OFFSET of historical windows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.state.rows import empty_batch, one_batch

Order: TypeAlias = Callable[[pa.RecordBatch, Ints], Ints]
"""The places of rows in their order, given their columns and times."""


class Pending:
    """Batches in the order of arrival, each row with the instant at which it begins."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[tuple[pa.RecordBatch, Ints]] = []

    def __len__(self) -> int:
        return sum(len(begins) for _, begins in self._batches)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait."""
        return sum(int(batch.nbytes) + begins.nbytes for batch, begins in self._batches)

    def instants(self, upto: int) -> Ints:
        """The instants up to then at which rows begin, one for each."""
        return np.concatenate([np.empty(0, np.int64), *(begins[begins <= upto] for _, begins in self._batches)])

    def add(self, batch: pa.RecordBatch, begins: Ints) -> None:
        """Some more rows."""
        if len(begins):
            self._batches.append((batch, begins))

    def release(self, upto: int | None, order: Order | None = None) -> tuple[pa.RecordBatch, Ints]:
        """The rows that begin at or before `upto` (None: all), in the order of time, or another one that is finer."""
        going: list[tuple[pa.RecordBatch, Ints]] = []
        staying: list[tuple[pa.RecordBatch, Ints]] = []
        for batch, begins in self._batches:
            ready = begins <= upto if upto is not None else np.ones(len(begins), np.bool_)
            if ready.all():
                going.append((batch, begins))
            elif not ready.any():
                staying.append((batch, begins))
            else:
                going.append((batch.filter(pa.array(ready)), begins[ready]))
                staying.append((batch.filter(pa.array(~ready)), begins[~ready]))
        self._batches = staying
        if not going:
            return empty_batch(self._schema), np.empty(0, np.int64)
        batch = one_batch([one for one, _ in going], self._schema) if len(going) > 1 else going[0][0]
        begins = np.concatenate([one for _, one in going])
        if order is None and bool((begins[1:] >= begins[:-1]).all()):
            return batch, begins
        places = np.argsort(begins, kind="stable") if order is None else order(batch, begins)
        if np.array_equal(places, np.arange(len(places))):
            return batch, begins
        return batch.take(pa.array(places)), begins[places]

    def table(self) -> pa.Table:
        """All that waits, for a snapshot; the instants are in column __ts."""
        parts = [
            pa.Table.from_batches([batch]).append_column("__ts", pa.array(begins)) for batch, begins in self._batches
        ]
        empty = pa.schema([*self._schema, pa.field("__ts", pa.int64())]).empty_table()
        return pa.concat_tables([empty, *(part.cast(empty.schema) for part in parts)])

    def restore(self, table: pa.Table) -> None:
        """Become what `table` gave."""
        self._batches = []
        for batch in table.combine_chunks().to_batches():
            columns = pa.RecordBatch.from_arrays(batch.columns[:-1], schema=self._schema)
            self.add(columns, np.array(batch.column(batch.num_columns - 1).to_numpy()))
