"""The answers of all shards for one stretch of time, as one query alone would have given them.

Rows stand in the order of time. A row that goes in one shard while an equal one comes in another has not changed: both
cancel. Cost: O(n log n) for n rows, and one hash of each where rows can cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.flow.net import netted
from windrow.kernels.jit import Ints
from windrow.state.rows import empty_batch, one_batch


def merge(batches: Sequence[pa.RecordBatch], schema: pa.Schema, kind: str, *, apart: bool = False) -> pa.RecordBatch:
    """One batch of what the shards gave; `kind` is that of the flows (`Flow.kind`), and so is the schema.

    With `apart` equal rows are known to be in one shard only (`ShardKey.apart`), so that none cancel.
    """
    some = [batch for batch in batches if batch.num_rows]
    if not some:
        return empty_batch(schema)
    if len(some) == 1:
        return some[0]
    if kind != "changes":
        whole = one_batch(some, schema)
        return whole.take(pa.array(np.argsort(_times(whole), kind="stable")))
    if apart:
        whole = one_batch(some, schema)
        return whole.take(pa.array(np.lexsort((_comes(whole), _times(whole)))))
    rows = pa.schema(list(schema)[2:])
    parts = []
    for batch in some:
        times, comes = _times(batch), _comes(batch)
        content = pa.RecordBatch.from_arrays(batch.columns[2:], schema=rows)
        for sign in (-1, 1):
            chosen = comes == (sign > 0)
            if chosen.any():
                parts.append((content.filter(pa.array(chosen)), times[chosen], sign))
    signed, times = netted(parts, rows).signed(pa.schema(list(schema)[1:]))
    return pa.RecordBatch.from_arrays([pa.array(times).view(schema.field(0).type), *signed.columns], schema=schema)


def _times(batch: pa.RecordBatch) -> Ints:
    return np.asarray(batch.column(0).view(pa.int64()).to_numpy())


def _comes(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows come, rather than go."""
    return np.asarray(pa.compute.equal(batch.column(1), "+").to_numpy(zero_copy_only=False))
