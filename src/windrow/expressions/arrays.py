"""Arrow ⇄ NumPy, and Arrow columns of any accepted type → the type that Windrow computes with.

A datum is an array or, for constants, a scalar: it becomes a NumPy array of length one and broadcasts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.language import types

Datum: TypeAlias = Any  # pa.Array | pa.Scalar; pyarrow has no types
Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

TIMESTAMP = pa.timestamp("us")


def as_array(datum: Datum) -> Datum:
    """An array; a scalar becomes one of length one."""
    return pa.repeat(datum, 1) if isinstance(datum, pa.Scalar) else datum


def whole(datum: Datum) -> Datum:
    """One contiguous array: long strings may come back from Arrow in chunks."""
    if not isinstance(datum, pa.ChunkedArray):
        return datum
    joined = datum.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks == 1 else pa.concat_arrays(joined.chunks)
    return joined


def valid(datum: Datum) -> Mask:
    """True where there is a value."""
    array = as_array(datum)
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.bool_)
    return truth(array.is_valid())


def truth(datum: Datum) -> Mask:
    """True where a BOOLEAN is true, False where it is false or NULL."""
    mask: Mask = pc.fill_null(as_array(datum), False).to_numpy(zero_copy_only=False)
    return mask


def numbers(datum: Datum) -> Numbers:
    """The values as NumPy, zero where NULL; times are their int64 or int32 representation."""
    array = as_array(datum)
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0).cast(array.type))
    result: Numbers = array.to_numpy(zero_copy_only=False)
    return result


def build(values: Numbers, where: Mask | None, arrow: pa.DataType) -> Datum:
    """Arrow from NumPy: NULL where `where` is False."""
    mask = None if where is None or where.all() else ~np.broadcast_to(where, values.shape)
    if pa.types.is_timestamp(arrow):
        return pa.array(values, type=pa.int64(), mask=mask).view(arrow)
    if pa.types.is_date32(arrow):
        return pa.array(values.astype(np.int32), type=pa.int32(), mask=mask).view(arrow)
    return pa.array(values, type=arrow, mask=mask)


def without(datum: Datum, failed: Mask) -> Datum:
    """NULL where a row failed, so that no later step trips over its value."""
    array = as_array(datum)
    return pc.if_else(pa.array(np.broadcast_to(failed, (len(array),))), pa.scalar(None, array.type), array)


def normalise(column: Datum) -> Datum:
    """A column in the one Arrow type that Windrow uses for its SQL type: from_arrow() says which are accepted."""
    array = whole(column)
    target = types.to_arrow(types.from_arrow(array.type))
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type):
        return _microseconds(array)
    return array.cast(target)


def _microseconds(array: Datum) -> Datum:
    unit = array.type.unit
    if unit == "us":
        return array.view(TIMESTAMP)
    if unit == "ns":
        # Down, never towards zero: a time before 1970 must not move forward past another one.
        return build(np.floor_divide(numbers(array), 1000), valid(array), TIMESTAMP)
    return pa.compute.cast(array.view(pa.timestamp(unit)), TIMESTAMP)
