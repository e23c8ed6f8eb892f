"""Strings and binaries to dense codes: an open-addressing hash table over a heap of bytes, kept across batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

PRIME = 1099511628211  # FNV-1a, for what is left of eight bytes
BASIS = -3750763034362895579
MIX = -7046029254386353131  # FNV's high bits are weak for short strings: multiply once more


@kernel
def word_at(data: NDArray[np.uint8], at: int) -> Any:
    """Eight bytes as one number: LLVM makes it one load."""
    low = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    at += 4
    high = (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )
    return low | high << 32


@kernel
def encode_bytes(
    offsets: NDArray[Any],
    data: NDArray[np.uint8],
    begin: int,
    table: Codes,
    shift: int,
    hashes: Ints,
    ends: Ints,
    heap: NDArray[np.uint8],
    count: int,
    codes: Codes,
) -> tuple[int, int]:
    """The code of each data[offsets[i]:offsets[i+1]]; code c is heap[ends[c]:ends[c+1]].

    Stops when `hashes` (half of the table) or the heap is full. Returns (rows done, codes).
    """
    mask = table.size - 1
    for i in range(begin, codes.size):
        low = offsets[i]
        size = offsets[i + 1] - low
        value: Any = BASIS  # an int to mypy, an int64 to Numba
        b = 0
        while b + 8 <= size:
            value = (value ^ word_at(data, low + b)) * MIX
            value ^= value >> 32
            b += 8
        while b < size:
            value = (value ^ np.int64(data[low + b])) * PRIME
            b += 1
        value = (value ^ (value >> 32)) * MIX
        h = (value >> shift) & mask
        code = table[h]
        while code >= 0:
            if hashes[code] == value and ends[code + 1] - ends[code] == size:
                at = ends[code]
                b = 0
                while b + 8 <= size and word_at(heap, at + b) == word_at(data, low + b):
                    b += 8
                while b < size and heap[at + b] == data[low + b]:
                    b += 1
                if b == size:
                    break
            h = (h + 1) & mask
            code = table[h]
        if code < 0:
            at = ends[count]
            if count == hashes.size or at + size > heap.size:
                return i, count
            code = count
            for b in range(size):
                heap[at + b] = data[low + b]
            ends[count + 1] = at + size
            hashes[count] = value
            table[h] = code
            count += 1
        codes[i] = code
    return codes.size, count


@kernel
def index_hashes(hashes: Ints, count: int, skip: int, table: Codes, shift: int) -> None:
    """Fill an empty table with codes 0..count-1, all but `skip` (the code of NULL)."""
    mask = table.size - 1
    for code in range(count):
        if code != skip:
            h = (hashes[code] >> shift) & mask
            while table[h] >= 0:
                h = (h + 1) & mask
            table[h] = code
