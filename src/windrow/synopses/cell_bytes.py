"""Cells (slot, group) as one number, and what many of them hold as bytes in one Arrow array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.collected import Question
from windrow.errors import QueryError
from windrow.kernels.jit import Codes, Ints

LOW = 0xFFFFFFFF
MOST_BYTES = (1 << 31) - 1
"""Of a column of BLOBs in one Arrow array."""


def cell_keys(slots: Codes | Ints, gids: Codes | Ints) -> Ints:
    """Slot and group of each cell in one number."""
    return np.asarray((slots.astype(np.int64) << 32) | gids)


def binaries(offsets: Any, data: Any) -> pa.Array:
    """Value i is bytes offsets[i]..offsets[i+1]-1 of an array of any type."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def content(values: pa.Array) -> Any:
    """The bytes of a large binary array, one value after the other."""
    ends = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, 8 * values.offset)
    data = values.buffers()[2]
    return b"" if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]


def places_of(known: Ints, keys: Ints) -> tuple[Ints, Any]:
    """Where each key stands among different known ones in any order, and which are known; some must be."""
    order = np.argsort(known)
    place = np.asarray(order[np.minimum(np.searchsorted(known[order], keys), len(known) - 1)])
    return place, known[place] == keys


def blobs(sketches: pa.Array, ask: Question) -> pa.Array:
    """As a column of answers, which has its limit."""
    size = len(content(sketches))
    if size > MOST_BYTES:
        raise QueryError(
            f"the sketches of {len(sketches):,} answer rows take {size:,} bytes, and a column of answers "
            "at most 2 GiB; take a smaller lg_k, or fewer groups"
        )
    return sketches.cast(ask.type)
