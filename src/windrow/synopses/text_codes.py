"""A key column of strings or binaries: values to dense int32 codes and back, across batches.

Encoding costs O(bytes of the batch), however many values are known; space is the bytes of the distinct values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.text import encode_bytes, index_hashes
from windrow.synopses.codes import Encoder
from windrow.synopses.scratch import scratch

_LONG = (pa.large_string(), pa.large_binary())


class TextEncoder(Encoder):
    """Bytes by content; strings are compared by their UTF-8 bytes."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._long = pa.large_string() if columns.is_text(plain) else pa.large_binary()
        self._known: pa.Array | None = None
        self._clear(0, 0)

    def _clear(self, values: int, size: int) -> None:
        room = max(8, values + values // 2)
        self._hashes: Ints = np.empty(room, np.int64)
        self._ends: Ints = np.zeros(room + 1, np.int64)
        self._heap: NDArray[np.uint8] = np.empty(max(256, size + size // 2), np.uint8)
        self._count = 0
        self._null = -1
        self._index()

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._hashes.nbytes + self._ends.nbytes + self._heap.nbytes + self._table.nbytes)

    def encode(self, values: pa.Array) -> Codes:
        """Hash every row; NULLs apart, only when there are any."""
        # Views and dictionaries have no offsets to walk along.
        if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type) or values.type in _LONG):
            values = values.cast(self._long)
        valid = columns.validity(values)
        if valid is None:
            return self._encode(values)
        codes = np.empty(len(values), np.int32)
        codes[valid] = self._encode(values.filter(pa.array(valid)))
        codes[~valid] = self._null_code()
        return codes

    def _encode(self, values: pa.Array) -> Codes:
        codes = scratch("codes", len(values))
        if not len(values):
            return codes
        long = values.type in _LONG
        _, offsets, data = values.buffers()
        width = np.dtype(np.int64 if long else np.int32)
        where = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize)
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        done, before = 0, self._count
        while True:
            done, self._count = encode_bytes(
                where,
                content,
                done,
                self._table,
                self._shift,
                self._hashes,
                self._ends,
                self._heap,
                self._count,
                codes,
            )
            if done == len(values):
                break
            self._make_room(int(where[done + 1] - where[done]))
        if self._count != before:
            self._known = None
        return codes

    def _null_code(self) -> int:
        if self._null < 0:
            if self._count == len(self._hashes):
                self._make_room(0)
            self._null = self._count
            self._hashes[self._count] = 0
            self._ends[self._count + 1] = self._ends[self._count]
            self._count += 1
            self._known = None
        return self._null

    def _make_room(self, size: int) -> None:
        if self._count == len(self._hashes):
            more = 2 * len(self._hashes)
            self._hashes = np.concatenate([self._hashes, np.empty(more - len(self._hashes), np.int64)])
            self._ends = np.concatenate([self._ends, np.empty(more + 1 - len(self._ends), np.int64)])
            self._index()
        used = int(self._ends[self._count])
        if used + size > len(self._heap):
            heap = np.empty(2 * (used + size), np.uint8)
            heap[:used] = self._heap[:used]
            self._heap = heap

    def _index(self) -> None:
        """At most half full: there is room for half as many values as the table has."""
        size = 1 << (2 * len(self._hashes) - 1).bit_length()
        self._shift = 64 - (size.bit_length() - 1)
        self._table = np.full(size, -1, np.int32)
        index_hashes(self._hashes, self._count, self._null, self._table, self._shift)

    def _values(self) -> pa.Array:
        """All values by code, NULL as an empty string."""
        if self._known is None:
            # Views: new values are written behind them, and a clean-up makes new arrays.
            ends = self._ends[: self._count + 1]
            heap = self._heap[: ends[-1]]
            self._known = pa.Array.from_buffers(self._long, self._count, [None, pa.py_buffer(ends), pa.py_buffer(heap)])
        return self._known

    def decode(self, codes: Any) -> pa.Array:
        """Take from the values known."""
        codes = np.asarray(codes)
        null = codes == self._null if self._null >= 0 else None
        found = self._values().take(pa.array(codes, mask=null))
        return found if found.type == self._kind else found.cast(self._kind)

    def compact(self, live: Any) -> None:
        """Encode what lives anew."""
        live = np.asarray(live)
        kept = self.decode_plain(live)
        self._load(kept, np.flatnonzero(live == self._null))

    def decode_plain(self, codes: Any) -> pa.Array:
        """The values of codes, NULL as an empty string."""
        return self._values().take(pa.array(codes))

    def _load(self, values: pa.Array, null: Any) -> None:
        """Value k gets code k; `null` is empty, or holds the code of NULL."""
        self._clear(len(values), int(values.nbytes))
        self._known = None
        split = int(null[0]) if len(null) else len(values)
        self._encode(values[:split])
        if len(null):
            self._null_code()
            self._encode(values[split + 1 :])

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"values": self._values(), "null": np.array([self._null] if self._null >= 0 else [], np.int64)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._load(arrays["values"].cast(self._long), np.asarray(arrays["null"]))
