"""A key column of decimals, unsigned BIGINTs or other values of one width: by their bytes, as texts are.

Encoding costs O(bytes of the batch), however many values are known; space is the bytes of the distinct values. Equal
values of one type have equal bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import columns
from windrow.kernels.jit import Codes
from windrow.synopses.codes import Encoder
from windrow.synopses.text_codes import TextEncoder


class FixedEncoder(Encoder):
    """Values <-> codes of their bytes."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._width = self._plain.bit_width // 8
        self._bytes = TextEncoder(pa.large_binary())

    def __len__(self) -> int:
        return len(self._bytes)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._bytes.nbytes

    def encode(self, values: pa.Array) -> Codes:
        """Each value as a run of bytes."""
        if values.type != self._plain:
            values = values.cast(self._plain)
        if not len(values):
            return np.empty(0, np.int32)
        begin, size = values.offset * self._width, len(values) * self._width
        data = values.buffers()[1].slice(begin, size) if values.null_count < len(values) else pa.py_buffer(bytes(size))
        valid = columns.validity(values)
        bitmap = None if valid is None else pa.array(valid).buffers()[1]
        ends = pa.py_buffer(np.arange(0, size + 1, self._width, dtype=np.int64))
        return self._bytes.encode(pa.Array.from_buffers(pa.large_binary(), len(values), [bitmap, ends, data]))

    def decode(self, codes: Any) -> pa.Array:
        """The bytes, taken for values again."""
        found = self._bytes.decode(codes).cast(pa.binary(self._width))
        values = pa.Array.from_buffers(self._plain, len(found), found.buffers(), offset=found.offset)
        return values if values.type == self._kind else values.cast(self._kind)

    def compact(self, live: Any) -> None:
        """Keep what lives."""
        self._bytes.compact(live)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return self._bytes.snapshot()

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._bytes.restore(arrays)


def is_fixed(kind: pa.DataType) -> bool:
    """Whether values are runs of bytes of one length."""
    types = pa.types
    return bool(types.is_decimal(kind) or types.is_uint64(kind) or types.is_fixed_size_binary(kind))
