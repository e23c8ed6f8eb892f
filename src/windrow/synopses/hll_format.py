"""HyperLogLog sketches as bytes of Apache DataSketches, so that those of Spark and of Windrow can be merged.

`hll_sketch_agg` of Spark gives such bytes; `datasketches.hll_sketch.deserialize` reads them. lg_k is 12 here. An
empty string has a coupon in Windrow, and none in Apache's sketches, which leave it out.
"""

from __future__ import annotations

import struct

import numpy as np

from windrow.kernels.hll import LG_K, REGISTERS, Registers
from windrow.kernels.jit import Ints

_LIST, _SET, _HLL = 0, 1, 2
_MODE, _HLL_8 = 0b11, 2 << 2
_FAMILY, _VERSION = 7, 1
_COMPACT, _OUT_OF_ORDER = 8, 16


def coupons_to_bytes(coupons: Ints) -> bytes:
    """A sketch of few values: their coupons, as a compact set."""
    flags = _COMPACT | (4 if not len(coupons) else 0)
    if len(coupons) < 8:
        head = struct.pack("<8B", 2, _VERSION, _FAMILY, LG_K, 3, flags, len(coupons), _LIST | _HLL_8)
    else:
        size = max(5, (4 * len(coupons) // 3).bit_length())
        head = struct.pack("<8BI", 3, _VERSION, _FAMILY, LG_K, size, flags, 0, _SET | _HLL_8, len(coupons))
    return head + coupons.astype("<u4").tobytes()


def registers_to_bytes(registers: Registers) -> bytes:
    """A sketch of many values: its registers, a byte each."""
    powers = 0.5 ** registers.astype(np.float64)
    low, high = float(powers[registers < 32].sum()), float(powers[registers >= 32].sum())
    flags = _COMPACT | _OUT_OF_ORDER
    head = struct.pack("<8B", 10, _VERSION, _FAMILY, LG_K, 0, flags, 0, _HLL | _HLL_8)
    counts = struct.pack("<3d2I", 0.0, low, high, int((registers == 0).sum()), 0)
    return head + counts + registers.astype(np.uint8).tobytes()


def from_bytes(data: bytes) -> Ints | Registers:
    """The coupons (int64) or the registers (uint8) of a sketch with lg_k 12, whatever its mode and type."""
    mode = data[7] & _MODE
    if data[2] != _FAMILY or data[3] != LG_K:
        raise ValueError(f"expected an HLL sketch with lg_k {LG_K}, found family {data[2]} with lg_k {data[3]}")
    if mode == _HLL:
        return np.frombuffer(_as_hll_8(data), np.uint8, REGISTERS, 40)
    start, many = (8, data[6]) if mode == _LIST else (12, int.from_bytes(data[8:12], "little"))
    stored = np.frombuffer(data, "<u4", (len(data) - start) // 4, start).astype(np.int64)
    return np.sort(stored[stored != 0])[:many]


def _as_hll_8(data: bytes) -> bytes:
    """The same registers, a byte each: Spark may have packed them."""
    if data[7] & 0b1100 == _HLL_8:
        return data
    import datasketches

    union = datasketches.hll_union(LG_K)
    union.update(datasketches.hll_sketch.deserialize(data))
    whole: bytes = union.get_result(datasketches.tgt_hll_type.HLL_8).serialize_updatable()
    return whole
