"""Many values of bytes in one Arrow array, and as a column of answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError

MOST_BYTES = (1 << 31) - 1
"""Of a column of BLOBs in one Arrow array."""


def binaries(offsets: Any, data: Any) -> pa.Array:
    """Value i is bytes offsets[i]..offsets[i+1]-1 of an array of any type."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def content(values: pa.Array) -> Any:
    """The bytes of a large binary array, one value after the other."""
    ends = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, 8 * values.offset)
    data = values.buffers()[2]
    return b"" if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]


def blobs(sketches: pa.Array) -> pa.Array:
    """As a column of answers, which has its limit."""
    size = len(content(sketches))
    if size > MOST_BYTES:
        raise QueryError(
            f"the sketches of {len(sketches):,} answer rows take {size:,} bytes, and a column of answers "
            "at most 2 GiB; take smaller sketches (lg_k, k), or fewer groups"
        )
    return sketches.cast(pa.binary())
