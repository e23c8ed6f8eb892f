"""Values to dense codes: a direct lookup table for small ranges, an open-addressing hash table otherwise."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

HASH = -7046029254386353131  # 2**64 / golden ratio, odd: Fibonacci hashing


@kernel
def encode_direct(
    values: NDArray[Any], begin: int, base: int, lookup: Codes, uniques: Ints, count: int, codes: Codes
) -> tuple[int, int]:
    """codes[i] = lookup[values[i] - base]; stops at a value out of range or when `uniques` is full."""
    # In this order, because base + size may be greater than any int64, which the compiler takes as impossible.
    limit = base + (lookup.size - 1)
    for i in range(begin, values.size):
        value = values[i]
        # Compared before it is subtracted: the difference of two int64 may not be one.
        if value < base or value > limit:
            return i, count
        place = value - base
        code = lookup[place]
        if code < 0:
            if count == uniques.size:
                return i, count
            code = count
            lookup[place] = code
            uniques[count] = value
            count += 1
        codes[i] = code
    return values.size, count


@kernel
def encode_hashed(
    values: NDArray[Any], begin: int, table: Codes, shift: int, uniques: Ints, count: int, codes: Codes
) -> tuple[int, int]:
    """The code of each value; a new one gets the next code. Stops when `uniques` is full (half of the table)."""
    mask = table.size - 1
    for i in range(begin, values.size):
        value = values[i]
        h = ((value * HASH) >> shift) & mask
        code = table[h]
        while code >= 0 and uniques[code] != value:
            h = (h + 1) & mask
            code = table[h]
        if code < 0:
            if count == uniques.size:
                return i, count
            code = count
            table[h] = code
            uniques[count] = value
            count += 1
        codes[i] = code
    return values.size, count


@kernel
def index_uniques(uniques: Ints, count: int, skip: int, table: Codes, shift: int) -> None:
    """Fill an empty table with codes 0..count-1, all but `skip` (the code of NULL, which has no value)."""
    mask = table.size - 1
    for code in range(count):
        if code == skip:
            continue
        h = ((uniques[code] * HASH) >> shift) & mask
        while table[h] >= 0:
            h = (h + 1) & mask
        table[h] = code
