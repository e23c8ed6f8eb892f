"""Exact sums of doubles and of their squares, which rows may also leave: fixed-point numbers (Kulisch 1986).

A group has 32-bit digits. A double is an integer of 53 bits times a power of two; it touches three digits, which are
kept in int64 words, so that carries wait until a sum is read. Adding and taking away are exact, whatever the order:
nothing adds up, and what is small beside a value that has gone is still there. Infinities and NaNs are counted beside.
O(1) per event, O(digits) per answer; as many digits as the values of the groups span.

The sum of the squared distances from the mean is (n Σx² - (Σx)²) / n. With doubles that is the difference of two great
numbers; here both are exact, so it is rounded like any other sum. O(digits²) per answer.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Floats, Ints, kernel

DIGIT = 32
MASK = (1 << 32) - 1
LOWEST = -1074
"""The exponent of bit 0 of digit 0: that of the smallest double."""
SPECIAL = 0x7FF
FRACTION = (1 << 52) - 1
HALF = 27
"""Bits of the lower half of the integer of a double, when it is squared."""


@kernel
def digits_of(bits: Ints, valid: NDArray[np.bool_]) -> tuple[int, int]:
    """The lowest digit that these doubles touch, and the one behind the highest; (0, 0) when there is none."""
    low = 1 << 30
    high = 0
    for i in range(bits.size):
        power = (bits[i] >> 52) & SPECIAL
        if valid[i] and power != SPECIAL and bits[i] << 1 != 0:
            digit = max(power - 1, 0) >> 5
            low = min(low, digit)
            high = max(high, digit + 3)
    if high == 0:
        return 0, 0
    return low, high


@kernel
def sweep_sums(
    by_cell: Ints,
    cells: Codes,
    cell_groups: Codes,
    sign: NDArray[np.int8],
    valid: NDArray[np.bool_],
    bits: Ints,
    base: int,
    digits: Ints,
    specials: Ints,
    out: Floats,
) -> None:
    """Add or take away each event's double in the order of cells; out[c] is the sum of the group at cell c.

    digits[g, k] is digit base + k of group g; specials[g] counts its NaNs, infinities and negative infinities.
    """
    work = np.empty(digits.shape[1] + 1, np.int64)
    for i in range(by_cell.size):
        event = by_cell[i]
        cell = cells[event]
        group = cell_groups[cell]
        if valid[event]:
            _add(bits[event], sign[event] * 1, base, digits[group], specials[group])
        if i + 1 == by_cell.size or cells[by_cell[i + 1]] != cell:
            out[cell] = _read(base, digits[group], specials[group], work)


@kernel
def square_digits_of(bits: Ints, valid: NDArray[np.bool_]) -> tuple[int, int]:
    """As `digits_of`, of the squares: their bit 0 has the exponent 2 * LOWEST."""
    low = 1 << 30
    high = 0
    for i in range(bits.size):
        power = (bits[i] >> 52) & SPECIAL
        if valid[i] and power != SPECIAL and bits[i] << 1 != 0:
            shift = 2 * max(power - 1, 0)
            low = min(low, shift >> 5)
            high = max(high, ((shift + 2 * HALF) >> 5) + 3)
    if high == 0:
        return 0, 0
    return low, high


@kernel
def sweep_moments(
    by_cell: Ints,
    cells: Codes,
    cell_groups: Codes,
    sign: NDArray[np.int8],
    valid: NDArray[np.bool_],
    bits: Ints,
    base: int,
    digits: Ints,
    square_base: int,
    squares: Ints,
    specials: Ints,
    counts: Ints,
    means: Floats,
    distances: Floats,
    out_counts: Floats,
) -> None:
    """As `sweep_sums`, with the squares too: at each cell the mean, Σ(x - mean)² and how many values there are.

    squares[g, k] is digit square_base + k; counts[g] has all values of a group. What is not finite makes NaN.
    """
    sum_work = np.empty(digits.shape[1] + 1, np.int64)
    square_work = np.empty(squares.shape[1] + 1, np.int64)
    first = min(square_base, 2 * base)
    last = max(square_base + square_work.size + 1, 2 * (base + sum_work.size) + 1)
    room = np.empty(last - first, np.int64)
    work = np.empty(room.size + 1, np.int64)
    for i in range(by_cell.size):
        event = by_cell[i]
        cell = cells[event]
        group = cell_groups[cell]
        if valid[event]:
            way = sign[event] * 1
            counts[group] += way
            _add(bits[event], way, base, digits[group], specials[group])
            _add_square(bits[event], way, square_base, squares[group])
        if i + 1 == by_cell.size or cells[by_cell[i + 1]] != cell:
            count = counts[group]
            out_counts[cell] = count
            if count <= 0:
                means[cell] = distances[cell] = 0.0
                continue
            means[cell] = _read(base, digits[group], specials[group], sum_work) / count
            if specials[group, 0] > 0 or specials[group, 1] > 0 or specials[group, 2] > 0:
                distances[cell] = np.nan
                continue
            room[:] = 0
            _carried(digits[group], sum_work)
            _take_square(sum_work, room, 2 * base - first)
            _carried(squares[group], square_work)
            for k in range(square_work.size):
                part = square_work[k] * count
                room[square_base - first + k] += part & MASK
                room[square_base - first + k + 1] += part >> 32
            distances[cell] = _rounded(room, work, first * DIGIT + 2 * LOWEST) / count


@kernel
def _take_square(number: Ints, into: Ints, at: int) -> None:
    """Take the square of a number off, from digit `at` on."""
    mask = np.uint64(MASK)
    for i in range(number.size):
        if number[i] == 0:
            continue
        for k in range(number.size):
            part = np.uint64(number[i]) * np.uint64(number[k])
            into[at + i + k] -= np.int64(part & mask)
            into[at + i + k + 1] -= np.int64(part >> np.uint64(32))


@kernel
def _add_square(bits: int, sign: int, base: int, digits: Ints) -> None:
    power = (bits >> 52) & SPECIAL
    fraction = bits & FRACTION
    if power == SPECIAL:
        return
    if power == 0:
        shift = 0
    else:
        fraction |= 1 << 52
        shift = 2 * (power - 1)
    if fraction == 0:
        return
    # (a 2**27 + b)²: each of the three products has at most 54 bits.
    high, low = fraction >> HALF, fraction & ((1 << HALF) - 1)
    _put(low * low, shift, sign, base, digits)
    _put(2 * high * low, shift + HALF, sign, base, digits)
    _put(high * high, shift + 2 * HALF, sign, base, digits)


@kernel
def _add(bits: int, sign: int, base: int, digits: Ints, specials: Ints) -> None:
    power = (bits >> 52) & SPECIAL
    fraction = bits & FRACTION
    if power == SPECIAL:
        if fraction != 0:
            specials[0] += sign
        elif bits > 0:
            specials[1] += sign
        else:
            specials[2] += sign
        return
    if power == 0:
        shift = 0
    else:
        fraction |= 1 << 52
        shift = power - 1
    if fraction == 0:
        return
    if bits < 0:
        sign = -sign
    _put(fraction, shift, sign, base, digits)


@kernel
def _put(whole: int, shift: int, sign: int, base: int, digits: Ints) -> None:
    """Add an integer of at most 54 bits, that many bits to the left."""
    digit = (shift >> 5) - base
    shift &= 31
    low = (whole & MASK) << shift
    high = ((whole >> 32) << shift) + (low >> 32)
    digits[digit] += sign * (low & MASK)
    digits[digit + 1] += sign * (high & MASK)
    digits[digit + 2] += sign * (high >> 32)


@kernel
def _read(base: int, digits: Ints, specials: Ints, work: Ints) -> float:
    """The sum, rounded once, half to even."""
    if specials[0] > 0 or (specials[1] > 0 and specials[2] > 0):
        return np.nan
    if specials[1] > 0:
        return np.inf
    if specials[2] > 0:
        return -np.inf
    return _rounded(digits, work, base * DIGIT + LOWEST)


@kernel
def _carried(digits: Ints, work: Ints) -> bool:
    """Carries done: the size of the number, in digits below 2**32 with one more in front; gives if it is negative."""
    carry = 0
    for k in range(digits.size):
        whole = digits[k] + carry
        work[k] = whole & MASK
        carry = whole >> 32
    work[digits.size] = carry & MASK
    negative = carry < 0
    if negative:
        carry = 1
        for k in range(digits.size + 1):
            whole = (~work[k] & MASK) + carry
            work[k] = whole & MASK
            carry = whole >> 32
    return negative


@kernel
def _rounded(digits: Ints, work: Ints, lowest: int) -> float:
    """The nearest double, ties to even; `lowest` is the exponent of bit 0 of the first digit."""
    negative = _carried(digits, work)
    top = digits.size
    while top >= 0 and work[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    width = 0
    while (work[top] >> width) != 0:
        width += 1
    middle = work[top - 1] if top >= 1 else 0
    low = work[top - 2] if top >= 2 else 0
    # The highest 64 bits: `width` of the top digit, 32 of the next, the rest of the third.
    left = 32 - width
    first = np.uint64((work[top] << left) | (middle >> width))
    second = np.uint64(((middle << left) & MASK) | (low >> width))
    bits = (first << np.uint64(32)) | second
    rest = low & ((1 << width) - 1)
    k = top - 3
    while rest == 0 and k >= 0:
        rest = work[k]
        k -= 1
    mantissa = np.int64(bits >> np.uint64(11))
    dropped = np.int64(bits & np.uint64(0x7FF))
    if dropped > 0x400 or (dropped == 0x400 and (rest != 0 or (mantissa & 1) != 0)):
        mantissa += 1
    power = top * DIGIT + width - 1 + lowest - 52
    value = math.ldexp(float(mantissa), power)
    return -value if negative else value
