"""Values as their hashes in Apache's sketches: what sketches of distinct values keep of them.

Equal values have equal hashes, as SQL has it: -0.0 is 0.0, and all NaNs are one value. The empty string has a hash like
any other, while Apache's sketches leave it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import columns
from windrow.kernels import murmur
from windrow.kernels.jit import Ints, frozen


def coupons_of(values: pa.Array) -> Ints:
    """The HyperLogLog coupon of each value, none of which is NULL."""
    return _hashed(values, murmur.word_coupons, murmur.byte_coupons)


def hashes_of(values: pa.Array) -> Ints:
    """63 bits of hash of each value, none of which is NULL."""
    return _hashed(values, murmur.word_hashes, murmur.byte_hashes)


def _hashed(values: pa.Array, of_words: Callable[..., None], of_bytes: Callable[..., None]) -> Ints:
    found: Any = np.empty(len(values), np.int64)
    if columns.is_text(values.type):
        text = values.cast(pa.large_string())
        _, offsets, data = text.buffers()
        ends = np.frombuffer(offsets, np.int64, len(text) + 1, 8 * text.offset) if len(text) else np.zeros(1, np.int64)
        content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        of_bytes(frozen(ends), frozen(content), found)
        return np.asarray(found)
    if pa.types.is_floating(values.type):
        floats = columns.floats(values) + 0.0  # -0.0 is 0.0
        floats[np.isnan(floats)] = np.nan
        words = floats.view(np.int64)
    elif pa.types.is_decimal(values.type):
        words = columns.unscaled(values)
    else:
        words = columns.ints(values).astype(np.int64)
    of_words(frozen(words), found)
    return np.asarray(found)
