"""Tuples that wait for their number: a number is final once the watermark has passed the tuple and all before it.

Space: the tuples above the watermark, that is, those of one LATENESS and of the newest instant.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.input import timestamps
from windrow.kernels.jit import Ints
from windrow.language.catalog import Stream
from windrow.numbering.order import rows_order


class Waiting:
    """Batches in the order of arrival; `release` gives what is complete, in ROWS order."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._batches: list[tuple[pa.Table, Ints]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples that wait."""
        return sum(table.nbytes + ts.nbytes for table, ts in self._batches)

    def __len__(self) -> int:
        return sum(len(ts) for _, ts in self._batches)

    def add(self, table: pa.Table) -> None:
        """Some tuples arrive, with all columns of the stream."""
        if table.num_rows:
            self._batches.append((table, timestamps(self._stream, table)))

    def release(self, watermark: int | None) -> tuple[pa.Table, Ints]:
        """The tuples up to the watermark (None: all), which wait no longer, and their timestamps."""
        going: list[tuple[pa.Table, Ints]] = []
        staying: list[tuple[pa.Table, Ints]] = []
        for table, ts in self._batches:
            if watermark is None or int(np.max(ts)) <= watermark:
                going.append((table, ts))
            elif int(np.min(ts)) > watermark:
                staying.append((table, ts))
            else:
                complete = ts <= watermark
                going.append((table.filter(pa.array(complete)), ts[complete]))
                staying.append((table.filter(pa.array(~complete)), ts[~complete]))
        self._batches = staying
        if not going:
            return self._stream.schema.empty_table(), np.empty(0, np.int64)
        table = pa.concat_tables([one for one, _ in going])
        ts = np.concatenate([one for _, one in going])
        placed = rows_order(self._stream.sequence, table, ts)
        if not np.array_equal(placed, np.arange(len(ts))):
            table, ts = table.take(pa.array(placed)), ts[placed]
        return table.combine_chunks(), ts

    def table(self) -> pa.Table:
        """All that waits, for a snapshot."""
        return pa.concat_tables([self._stream.schema.empty_table(), *(table for table, _ in self._batches)])
