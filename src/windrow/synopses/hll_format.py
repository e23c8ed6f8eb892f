"""HyperLogLog sketches as bytes of Apache DataSketches, so that those of Spark and of Windrow can be merged.

`hll_sketch_agg` of Spark gives such bytes; `datasketches.hll_sketch.deserialize` reads them. An empty string
has a coupon in Windrow, and none in Apache's sketches, which leave it out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.aggregates.blobs import binaries
from windrow.kernels.hll import LG_K, REGISTERS, Registers, harmonic, set_registers
from windrow.kernels.jit import Ints

_LIST, _SET, _HLL = 0, 1, 2
_MODE, _HLL_8 = 0b11, 2 << 2
_FAMILY, _VERSION = 7, 1
_EMPTY, _COMPACT, _OUT_OF_ORDER = 4, 8, 16
_HLL_HEAD = np.dtype(
    [("ints", "u1"), ("version", "u1"), ("family", "u1"), ("lg_k", "u1"), ("unused", "u1"), ("flags", "u1"),
     ("least", "u1"), ("mode", "u1"), ("hip", "<f8"), ("low", "<f8"), ("high", "<f8"), ("zeros", "<u4"),
     ("exceptions", "<u4")]
)  # fmt: skip


def most_coupons(lg_k: int) -> int:
    """How many coupons Apache's sketches hold before they go over to registers."""
    return 7 if lg_k < 8 else 3 << (lg_k - 5)


def sketches(kept: Registers, sizes: Ints, lg_k: int = LG_K) -> pa.Array:
    """Row i of `kept` is sizes[i] coupons of 4 bytes in any order, or if that is -1 registers.

    The registers are those of lg_k 12; fewer are their maxima. Coupons are written in ascending order, and only if
    there are so few that Apache would have coupons too.
    """
    full = sizes < 0
    row = np.repeat(np.arange(len(sizes)), np.where(full, 0, sizes))
    place = np.arange(len(row)) - np.searchsorted(row, row)
    coupons = kept.view("<u4")[row, place].astype(np.int64)
    few = ~full & (sizes <= most_coupons(lg_k))
    registers = np.zeros((len(sizes), 1 << lg_k), np.uint8)
    registers[full] = kept[full].reshape(-1, REGISTERS >> lg_k, 1 << lg_k).max(axis=1, initial=0)
    set_registers(np.where(few[row], -1, row), coupons, registers)
    sparse = _coupon_sketches(np.sort((row << 32 | coupons)[few[row]]) & 0xFFFFFFFF, sizes[few], lg_k)
    place = np.where(few, np.cumsum(few) - 1, len(sparse) + np.cumsum(~few) - 1)
    return pa.concat_arrays([sparse, _register_sketches(registers[~few], lg_k)]).take(pa.array(place))


def coupons_to_bytes(coupons: Ints) -> bytes:
    """A sketch of few values: their ascending coupons, as a compact set."""
    made: bytes = _coupon_sketches(coupons, np.array([len(coupons)]), LG_K)[0].as_py()
    return made


def registers_to_bytes(registers: Registers) -> bytes:
    """A sketch of many values: its registers, a byte each."""
    made: bytes = _register_sketches(registers[None], LG_K)[0].as_py()
    return made


def _coupon_sketches(coupons: Ints, sizes: Ints, lg_k: int) -> pa.Array:
    """Numbers of 4 bytes: a head of two or, for a set, three of them, then the coupons."""
    listed = sizes < 8
    heads = np.where(listed, 2, 3)
    offsets = np.concatenate([[0], np.cumsum(heads + sizes)])
    begin = offsets[:-1]
    # A set says how great a hash table is that it fills to three quarters.
    table = np.where(listed, 3, 5 + np.searchsorted(3 << np.arange(3, 25), sizes))
    flags = np.where(sizes == 0, _COMPACT | _EMPTY, _COMPACT)
    words = np.empty(int(offsets[-1]), "<u4")
    words[begin] = heads | _VERSION << 8 | _FAMILY << 16 | lg_k << 24
    mode = np.where(listed, _LIST, _SET) | _HLL_8
    words[begin + 1] = table | flags << 8 | np.where(listed, sizes, 0) << 16 | mode << 24
    words[begin[~listed] + 2] = sizes[~listed]
    words[np.arange(len(coupons)) + np.repeat(begin + heads - (np.cumsum(sizes) - sizes), sizes)] = coupons
    return binaries(4 * offsets, words)


def _register_sketches(registers: Registers, lg_k: int) -> pa.Array:
    """A head of 40 bytes, then the registers."""
    low, high, zeros = np.zeros(len(registers)), np.zeros(len(registers)), np.zeros(len(registers), np.int64)
    harmonic(registers, low, high, zeros)
    head = np.zeros(len(registers), _HLL_HEAD)
    head["ints"], head["version"], head["family"], head["lg_k"] = 10, _VERSION, _FAMILY, lg_k
    head["flags"], head["mode"] = _COMPACT | _OUT_OF_ORDER, _HLL | _HLL_8
    head["low"], head["high"], head["zeros"] = low, high, zeros
    whole = np.concatenate([head.view(np.uint8).reshape(len(registers), 40), registers], axis=1)
    return binaries(np.arange(len(registers) + 1) * (40 + (1 << lg_k)), whole)


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
