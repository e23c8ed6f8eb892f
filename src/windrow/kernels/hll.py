"""HyperLogLog as Apache DataSketches has it: the same hash and coupons, so that sketches of both can be merged.

A value's hash is MurmurHash3 (x64, 128 bits, seed 9001) of its 8 bytes or its UTF-8. A coupon is 26 bits of address
and 6 bits of value (leading zeros of the second half of the hash, plus one); a register is the low 12 bits of the
address, and keeps the greatest value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Floats, Ints, kernel

SEED = np.uint64(9001)
C1, C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
M1, M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
N1, N2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
FIVE, BYTE = np.uint64(5), np.uint64(8)
R27, R31, R33, R64 = np.uint64(27), np.uint64(31), np.uint64(33), np.uint64(64)
ADDRESS = np.uint64(0x3FFFFFF)

LG_K = 12
REGISTERS = 1 << LG_K
VALUES = 64

Registers = NDArray[np.uint8]


@kernel
def rotated(word: Any, bits: Any) -> Any:
    """The word with its bits moved left, around."""
    return (word << bits) | (word >> (R64 - bits))


@kernel
def mixed(word: Any) -> Any:
    """The finalisation of MurmurHash3."""
    word ^= word >> R33
    word *= M1
    word ^= word >> R33
    word *= M2
    return word ^ (word >> R33)


@kernel
def coupon_of(h1: Any, h2: Any, size: Any) -> int:
    """Finish a hash of so many bytes, and take the coupon of it."""
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    h1 = mixed(h1)
    h2 = mixed(h2)
    h1 += h2
    h2 += h1
    zeros = 0
    while zeros < 62 and h2 >> np.uint64(63 - zeros) == np.uint64(0):
        zeros += 1
    return int(((zeros + 1) << 26) | np.int64(h1 & ADDRESS))


@kernel
def word_coupons(words: Ints, coupons: Ints) -> None:
    """The coupon of each 8-byte value."""
    for i in range(words.size):
        k1 = rotated(np.uint64(words[i]) * C1, R31) * C2
        coupons[i] = coupon_of(SEED ^ k1, SEED, BYTE)


@kernel
def byte_coupons(offsets: Ints, data: NDArray[np.uint8], coupons: Ints) -> None:
    """The coupon of each string data[offsets[i]:offsets[i+1]]."""
    for i in range(coupons.size):
        at = offsets[i]
        end = offsets[i + 1]
        size = np.uint64(end - at)
        h1 = SEED
        h2 = SEED
        while at <= end:
            # 16 bytes at a time; the last block may be short or empty, and is not stirred like the others.
            k1 = np.uint64(0)
            k2 = np.uint64(0)
            for b in range(min(8, end - at)):
                k1 |= np.uint64(data[at + b]) << np.uint64(8 * b)
            for b in range(8, min(16, end - at)):
                k2 |= np.uint64(data[at + b]) << np.uint64(8 * b - 64)
            h1 ^= rotated(k1 * C1, R31) * C2
            if end - at >= 16:
                h1 = (rotated(h1, R27) + h2) * FIVE + N1
            h2 ^= rotated(k2 * C2, R33) * C1
            if end - at >= 16:
                h2 = (rotated(h2, R31) + h1) * FIVE + N2
            at += 16
        coupons[i] = coupon_of(h1, h2, size)


@kernel
def set_registers(rows: Ints, coupons: Ints, registers: Registers) -> None:
    """registers[row, address] = the greatest value; rows below 0 are left out."""
    for i in range(rows.size):
        if rows[i] >= 0:
            slot = coupons[i] & (REGISTERS - 1)
            value = coupons[i] >> 26
            registers[rows[i], slot] = max(registers[rows[i], slot], value)


@kernel
def distinct_words(words: Ints, table: Ints, shift: int, out: Ints) -> int:
    """The different ones among non-negative words, in order of appearance; the table holds -1 everywhere."""
    mask = table.size - 1
    many = 0
    for i in range(words.size):
        word = words[i]
        place = np.int64(np.uint64(word) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(shift))
        while table[place] >= 0 and table[place] != word:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = word
            out[many] = word
            many += 1
    return many


@kernel
def sigma(x: float) -> float:
    """Ertl's σ: the share of registers that are still 0."""
    if x == 1.0:
        return math.inf
    y = 1.0
    z = x
    before = -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@kernel
def tau(x: float) -> float:
    """Ertl's τ: the share of registers that are full."""
    if x in (0.0, 1.0):
        return 0.0
    y = 1.0
    z = 1.0 - x
    before = -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
    return z / 3.0


@kernel
def estimate(histogram: Ints) -> float:
    """How many values, from how many registers hold each number (Ertl 2017, the improved raw estimator)."""
    m = float(REGISTERS)
    z = m * tau(1.0 - histogram[VALUES - 1] / m)
    for value in range(VALUES - 2, 0, -1):
        z = 0.5 * (z + histogram[value])
    z += m * sigma(histogram[0] / m)
    return 0.5 / math.log(2.0) * m * m / z


@kernel
def put(slot: int, value: int, counts: Codes, greatest: Ints, histogram: Ints) -> None:
    """One more (slot, value): the histogram follows the greatest value of each slot."""
    counts[slot * VALUES + value] += 1
    if value > greatest[slot]:
        histogram[greatest[slot]] -= 1
        histogram[value] += 1
        greatest[slot] = value


@kernel
def take(slot: int, value: int, counts: Codes, greatest: Ints, histogram: Ints) -> None:
    """One fewer."""
    counts[slot * VALUES + value] -= 1
    if value > 0 and value == greatest[slot] and counts[slot * VALUES + value] == 0:
        next_ = value - 1
        while next_ > 0 and counts[slot * VALUES + next_] == 0:
            next_ -= 1
        histogram[value] -= 1
        histogram[next_] += 1
        greatest[slot] = next_


@kernel
def slide_sketches(
    sparse_panes: Ints,
    sparse_coupons: Ints,
    sparse_starts: Ints,
    dense_panes: Ints,
    dense_rows: Ints,
    dense_starts: Ints,
    registers: Registers,
    row_group: Ints,
    row_first: Ints,
    row_last: Ints,
    most: int,
    out: Floats,
) -> None:
    """Estimates for answer rows in order of group: coupons and registers enter and leave as windows advance.

    Entries starts[g]..starts[g+1]-1 are those of group g, by pane. Few different coupons are counted one by one, more
    than `most`, or a cell that has registers, by the registers.
    """
    counts = np.zeros(REGISTERS * VALUES, np.int32)
    greatest = np.zeros(REGISTERS, np.int64)
    histogram = np.zeros(VALUES, np.int64)
    histogram[0] = REGISTERS
    longest = 1
    for g in range(sparse_starts.size - 1):
        longest = max(longest, sparse_starts[g + 1] - sparse_starts[g])
    size = 2
    while size < 2 * longest:
        size *= 2
    table = np.full(size, -1, np.int64)
    alike = np.zeros(size, np.int64)
    places = np.empty(longest, np.int64)
    group = -1
    a = b = c = d = 0
    a_stop = c_stop = base = 0
    low = high = distinct = 0
    mask = 1
    for row in range(row_group.size):
        restart = row_group[row] != group or row_first[row] < low or row_last[row] < high
        if restart:
            # Take out what is left, entry by entry: the counters are too many to be cleared for every group.
            for e in range(a, b):
                coupon = sparse_coupons[e]
                take(coupon & (REGISTERS - 1), coupon >> 26, counts, greatest, histogram)
                alike[places[e - base]] = 0
            for e in range(c, d):
                for slot in range(REGISTERS):
                    take(slot, registers[dense_rows[e], slot], counts, greatest, histogram)
            distinct = 0
        if row_group[row] != group:
            group = row_group[row]
            base = sparse_starts[group]
            a_stop = sparse_starts[group + 1]
            c_stop = dense_starts[group + 1]
            mask = 1
            while mask < 2 * (a_stop - base):
                mask *= 2
            table[:mask] = -1
            alike[:mask] = 0
            mask -= 1
            for e in range(base, a_stop):
                coupon = sparse_coupons[e]
                place = (coupon * 0x9E3779B1 >> 16) & mask
                while table[place] >= 0 and table[place] != coupon:
                    place = (place + 1) & mask
                table[place] = coupon
                places[e - base] = place
        if restart:
            a = b = base
            c = d = dense_starts[group]
        low = row_first[row]
        high = row_last[row]
        while b < a_stop and sparse_panes[b] < high:
            coupon = sparse_coupons[b]
            put(coupon & (REGISTERS - 1), coupon >> 26, counts, greatest, histogram)
            place = places[b - base]
            alike[place] += 1
            distinct += alike[place] == 1
            b += 1
        while a < b and sparse_panes[a] < low:
            coupon = sparse_coupons[a]
            take(coupon & (REGISTERS - 1), coupon >> 26, counts, greatest, histogram)
            place = places[a - base]
            alike[place] -= 1
            distinct -= alike[place] == 0
            a += 1
        while d < c_stop and dense_panes[d] < high:
            for slot in range(REGISTERS):
                put(slot, registers[dense_rows[d], slot], counts, greatest, histogram)
            d += 1
        while c < d and dense_panes[c] < low:
            for slot in range(REGISTERS):
                take(slot, registers[dense_rows[c], slot], counts, greatest, histogram)
            c += 1
        if c == d and distinct <= most:
            out[row] = distinct
        else:
            out[row] = estimate(histogram)
