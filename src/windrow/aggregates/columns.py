"""Arrow columns as NumPy arrays without copies where the layout allows it; what is at NULLs is garbage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MAX_DECIMAL_DIGITS = 18
"""Decimals of at most this precision fit in an int64 once the point is removed."""


def is_temporal(kind: pa.DataType) -> bool:
    """Whether values are a number of days, seconds, … since some origin."""
    types = pa.types
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind))


def is_int_like(kind: pa.DataType) -> bool:
    """Whether values map to int64 keeping their order: ints, bools, dates, times; not uint64."""
    types = pa.types
    integral = types.is_integer(kind) and not types.is_uint64(kind)
    return bool(integral or types.is_boolean(kind) or is_temporal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Strings of any Arrow layout."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Bytes of varying length, in any Arrow layout."""
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def is_short_decimal(kind: pa.DataType) -> bool:
    """Whether unscaled values fit in an int64."""
    return bool(pa.types.is_decimal(kind) and kind.precision <= MAX_DECIMAL_DIGITS)


def primitive(values: pa.Array, dtype: Any) -> NDArray[Any]:
    """The data buffer of a fixed-width array."""
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), dtype)
    # The buffer may be longer than its values, by any number of bytes.
    return np.frombuffer(buffer, dtype, len(values), values.offset * np.dtype(dtype).itemsize)


def ints(values: pa.Array) -> NDArray[Any]:
    """An int-like column as int32 or int64; narrow ints are widened so that kernels need two dtypes only."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return primitive(pc.cast(values, pa.int8()), np.int8).astype(np.int32)
    width = kind.bit_width // 8
    unsigned = pa.types.is_unsigned_integer(kind)
    data = primitive(values, np.dtype(f"{'u' if unsigned else 'i'}{width}"))
    if width == 4 and unsigned:
        return data.astype(np.int64)
    return data.astype(np.int32) if width < 4 else data


def floats(values: pa.Array) -> NDArray[np.float64]:
    """A float column as float64."""
    width = values.type.bit_width // 8
    return primitive(values, np.dtype(f"f{width}")).astype(np.float64, copy=False)


def unscaled(values: pa.Array) -> NDArray[np.int64]:
    """A short decimal column as its unscaled int64 values."""
    words = values.type.bit_width // 64
    if words == 0:
        return primitive(values, np.int32).astype(np.int64)
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), np.int64)
    data = np.frombuffer(buffer, np.int64, len(values) * words, values.offset * words * 8)
    # Little-endian two's complement: the lowest word alone is the value, as it fits.
    return np.ascontiguousarray(data[::words])


def validity(values: pa.Array) -> NDArray[np.bool_] | None:
    """Where values are not NULL; None when there is no NULL."""
    if values.null_count == 0:
        return None
    mask: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return mask


def from_ints(values: NDArray[Any], kind: pa.DataType, null: NDArray[np.bool_] | None = None) -> pa.Array:
    """The inverse of `ints`: an array of an int-like type."""
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(np.bool_), mask=null)
    width = kind.bit_width // 8
    storage = np.dtype(f"{'u' if pa.types.is_unsigned_integer(kind) else 'i'}{width}")
    if null is None:
        return from_words(values.astype(storage, copy=False), kind)
    made = pa.array(values.astype(storage, copy=False), mask=null)
    return made if made.type == kind else made.view(kind)


def from_words(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An array without NULLs around the memory of values that are stored as Arrow stores them."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def from_unscaled(
    low: NDArray[Any], high: NDArray[Any], kind: pa.DataType, null: NDArray[np.bool_] | None = None
) -> pa.Array:
    """A decimal128 array from the two words of its unscaled values."""
    words = np.empty((len(low), 2), np.int64)
    words[:, 0] = low
    words[:, 1] = high
    bitmap = None if null is None else pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(kind, len(low), [bitmap, pa.py_buffer(words)])
