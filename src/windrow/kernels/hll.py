"""HyperLogLog as Apache DataSketches has it: the same coupons (see `murmur`), so that sketches of both can be merged.

A register is the low 12 bits of the address of a coupon, and keeps the greatest value.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Floats, Ints, kernel

LG_K = 12
REGISTERS = 1 << LG_K
VALUES = 64

Registers = NDArray[np.uint8]


@kernel
def set_registers(rows: Ints, coupons: Ints, registers: Registers) -> None:
    """registers[row, address] = the greatest value; rows below 0 are left out. There are a power of two in a row."""
    for i in range(rows.size):
        if rows[i] >= 0:
            slot = coupons[i] & (registers.shape[1] - 1)
            value = coupons[i] >> 26
            registers[rows[i], slot] = max(registers[rows[i], slot], value)


@kernel
def harmonic(registers: Registers, low: Floats, high: Floats, zeros: Ints) -> None:
    """Per row the sum of 2^-value over the values below 32 and over the others, and how many are 0."""
    for row in range(registers.shape[0]):
        counts = np.zeros(VALUES, np.int64)
        for slot in range(registers.shape[1]):
            counts[registers[row, slot]] += 1
        zeros[row] = counts[0]
        for value in range(VALUES):
            if value < 32:
                low[row] += counts[value] * 0.5**value
            else:
                high[row] += counts[value] * 0.5**value


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
    kept: Registers,
    sizes: Ints,
) -> None:
    """Estimates for answer rows in order of group: coupons and registers enter and leave as windows advance.

    Entries starts[g]..starts[g+1]-1 are those of group g, by pane. Few different coupons are counted one by one, more
    than `most`, or a cell that has registers, by the registers. If there is room in `kept`, row i of it gets sizes[i]
    coupons of 4 bytes, lowest byte first, in any order; or all registers, and sizes[i] is -1.
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
    # The places of the different coupons that are in, and where each stands among them.
    inside = np.empty(longest, np.int64)
    where = np.empty(size, np.int64)
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
            if alike[place] == 1:
                inside[distinct] = place
                where[place] = distinct
                distinct += 1
            b += 1
        while a < b and sparse_panes[a] < low:
            coupon = sparse_coupons[a]
            take(coupon & (REGISTERS - 1), coupon >> 26, counts, greatest, histogram)
            place = places[a - base]
            alike[place] -= 1
            if alike[place] == 0:
                distinct -= 1
                last = inside[distinct]
                inside[where[place]] = last
                where[last] = where[place]
            a += 1
        while d < c_stop and dense_panes[d] < high:
            for slot in range(REGISTERS):
                put(slot, registers[dense_rows[d], slot], counts, greatest, histogram)
            d += 1
        while c < d and dense_panes[c] < low:
            for slot in range(REGISTERS):
                take(slot, registers[dense_rows[c], slot], counts, greatest, histogram)
            c += 1
        few = c == d and distinct <= most
        if kept.shape[0] == 0:
            out[row] = distinct if few else estimate(histogram)
        elif few:
            sizes[row] = distinct
            for i in range(distinct):
                coupon = table[inside[i]]
                for byte in range(4):
                    kept[row, 4 * i + byte] = (coupon >> (8 * byte)) & 255
        else:
            sizes[row] = -1
            for slot in range(REGISTERS):
                kept[row, slot] = greatest[slot]
