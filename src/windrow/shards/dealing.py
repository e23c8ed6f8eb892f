"""Which shard a tuple goes to: a hash of its key, the same on every machine and in every version.

Equal keys go to one shard, as SQL compares them: integers of any width, -0.0 and 0.0, all NaNs; so do NULLs.
Cost: one MurmurHash3 per tuple.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.synopses.value_hashes import hashes_of

OF_NULL = 0
"""The shard of tuples without a key."""


def deal(column: pa.Array | pa.ChunkedArray, shards: int) -> Ints:
    """The shard of each row, 0 … shards - 1, by the value of its key.

    >>> deal(pa.array([1, None, 1], pa.int32()), 3).tolist() == deal(pa.array([1, None, 1], pa.int64()), 3).tolist()
    True
    """
    if shards < 1:
        raise ValueError(f"tuples are dealt to at least one shard, not to {shards}")
    values = _plain(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    if not values.null_count:
        return np.asarray(hashes_of(values) % shards)
    homes = np.full(len(values), OF_NULL, np.int64)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    homes[valid] = hashes_of(values.drop_null()) % shards
    return homes


def _plain(values: pa.Array) -> pa.Array:
    """In the layout in which equal values have equal bits."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _plain(values.dictionary_decode())
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return values.cast(pa.timestamp("us", kind.tz))
    if pa.types.is_date64(kind):
        return values.cast(pa.date32())
    if pa.types.is_null(kind):
        return values.cast(pa.int64())
    return values
