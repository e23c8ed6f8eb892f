"""The sketches of the _SKETCH_AGG aggregates by the book, one value at a time: the hashes are by Apache's package."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

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


def kll_sketch(values: Iterable[Value], k: int) -> bytes:
    """The bits of the counts as levels, once the ranks are multiples of a power of two with which they fit.

    >>> sketch = datasketches.kll_doubles_sketch.deserialize(kll_sketch(range(1, 10_001), 200))
    >>> sketch.n, sketch.get_min_value(), sketch.get_max_value(), abs(sketch.get_quantile(0.5) - 5_000) <= 50
    (10000, 1.0, 10000.0, True)
    """
    counts = sorted(Counter(number for number in map(_number, values) if not math.isnan(number)).items())
    total, unit = sum(count for _, count in counts), 1
    head = struct.pack("<HBB", k, 8, 0)
    if total == 0:
        return bytes([2, 1, 15, 1]) + head
    if total == 1:
        return bytes([2, 2, 15, 4]) + head + struct.pack("<d", counts[0][0])
    while True:
        levels: list[list[float]] = [[] for _ in range(64)]
        seen = before = 0
        for number, count in counts:
            seen += count
            rank = total if seen == total else min(total, (2 * seen + unit) // (2 * unit) * unit)
            for level in range(64):
                if (rank - before) >> level & 1:
                    levels[level].append(number)
            before = rank
        used = max(level for level in range(64) if levels[level]) + 1
        room = sum(max(8, _rounded_half_up(k * Fraction(2, 3) ** depth)) for depth in range(used))
        if sum(map(len, levels)) <= room:
            break
        unit *= 2
    starts = [room - sum(map(len, levels[level:])) for level in range(used)]
    numbers = [counts[0][0], counts[-1][0], *(number for level in levels for number in level)]
    data = bytes([5, 1, 15, 2]) + head + struct.pack("<QHBB", total, k, used, 0)
    return data + struct.pack(f"<{used}I", *starts) + struct.pack(f"<{len(numbers)}d", *numbers)


def items_sketch(values: Iterable[Value]) -> bytes:
    """The 1024 highest counts, each less the next one; and that as the error.

    >>> datasketches.frequent_strings_sketch.deserialize(items_sketch(["a", "b", "a"])).get_estimate("a")
    2
    """
    ranked = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    lost = ranked[1024][1] if len(ranked) > 1024 else 0
    kept = [(value, count - lost) for value, count in ranked[:1024] if count > lost]
    size = next(size for size in range(3, 12) if 4 * len(kept) <= 3 << size)
    if not ranked:
        return bytes([1, 1, 10, 11, size, 5, 0, 0])
    total = sum(count for _, count in ranked)
    data = bytes([4, 1, 10, 11, size, 0, 0, 0]) + struct.pack("<3Q", len(kept), total, lost)
    data += struct.pack(f"<{len(kept)}Q", *(count for _, count in kept))
    return data + b"".join(_item(value) for value, _ in kept)


def sketch(values: Sequence[Value], name: str, size: int) -> bytes:
    """What an aggregate makes of values; its lg_k or k is `size`."""
    if name == "ITEMS_SKETCH_AGG":
        return items_sketch(values)
    makers = {"HLL_SKETCH_AGG": hll_sketch, "THETA_SKETCH_AGG": theta_sketch, "KLL_SKETCH_AGG": kll_sketch}
    return makers[name](values, size)


def _number(value: Value) -> float:
    if not isinstance(value, int | float | Decimal):
        raise TypeError(f"expected a number, found {value!r}")
    # -0.0 is the same value as 0.0, and is written as that.
    return float(value) + 0.0


def _item(value: Value) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", len(value.encode())) + value.encode()
    return struct.pack("<q", value)


def _rounded_half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


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
