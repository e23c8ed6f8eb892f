"""The sketches of HLL_SKETCH_AGG and THETA_SKETCH_AGG by the book: hashes by Apache's package, one value at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

import datasketches
import numpy as np

from windrow.kernels.hll import REGISTERS
from windrow.synopses.hll_format import sketches

Value = bool | int | float | str | date | datetime | Decimal

_EMPTY_STRING = (0x0A491BB9, 0x0F38519133248DDC)
"""Its coupon and its hash: Apache's sketches leave it out, SQL does not."""
_EPOCH = datetime(1970, 1, 1)


def hll_sketch(values: Iterable[Value], lg_k: int) -> bytes:
    """The coupons of the values or, when they are many, the registers.

    >>> datasketches.hll_sketch.deserialize(hll_sketch(["a", "b", "a"], 12)).get_estimate()
    2.000000004967054
    """
    coupons = sorted({_coupon(value) for value in values})
    kept = np.zeros((1, REGISTERS), np.uint8)
    size = len(coupons)
    if 4 * size <= REGISTERS:
        kept.view("<u4")[0, :size] = coupons
    else:
        size = -1
        for coupon in coupons:
            kept[0, coupon % REGISTERS] = max(int(kept[0, coupon % REGISTERS]), coupon >> 26)
    made: bytes = sketches(kept, np.array([size]), lg_k)[0].as_py()
    return made


def theta_sketch(values: Iterable[Value], lg_k: int) -> bytes:
    """The 2^lg_k smallest hashes of the values, and as θ the next one.

    >>> datasketches.compact_theta_sketch.deserialize(theta_sketch(range(10), 4)).get_estimate()
    10.0
    """
    nominal = 1 << lg_k
    hashes = sorted({_hash(value) for value in values})
    longs: tuple[int, ...] = (1,)
    if len(hashes) > nominal:
        longs = (3, nominal, hashes[nominal])
    elif len(hashes) > 1:
        longs = (2, len(hashes))
    flags = 0x1A if hashes else 0x1E
    first = int.from_bytes(struct.pack("<6BH", longs[0], 3, 3, 0, 0, flags, 0x93CC), "little", signed=True)
    words = [first, *longs[1:], *hashes[:nominal]]
    return struct.pack(f"<{len(words)}q", *words)


def _coupon(value: Value) -> int:
    if value == "":
        return _EMPTY_STRING[0]
    one = datasketches.hll_sketch(12)
    one.update(_plain(value))
    return int.from_bytes(one.serialize_compact()[8:12], "little")


def _hash(value: Value) -> int:
    if value == "":
        return _EMPTY_STRING[1]
    one = datasketches.update_theta_sketch(5)
    one.update(_plain(value))
    (found,) = one.compact()
    return int(found)


def _plain(value: Value) -> int | float | str:
    """Dates and times as days and microseconds, decimals without their point."""
    match value:
        case datetime():
            passed = value - _EPOCH
            return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
        case date():
            return (value - _EPOCH.date()).days
        case Decimal():
            return int(value.scaleb(-int(value.as_tuple().exponent)))
        case bool():
            return int(value)
    return value
