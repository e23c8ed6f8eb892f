"""Exact sums of doubles that rows may also leave: a fixed-point number of 32-bit digits per group (Kulisch 1986).

A double is an integer of 53 bits times a power of two; it touches three digits, which are kept in int64 words, so that
carries wait until a sum is read. Adding and taking away are exact, whatever the order: nothing adds up, and what
is small beside a value that has gone is still there. Infinities and NaNs are counted beside. O(1) per event, O(digits)
per answer; as many digits as the values of the groups span.
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
    digit = (shift >> 5) - base
    shift &= 31
    low = (fraction & MASK) << shift
    high = ((fraction >> 32) << shift) + (low >> 32)
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
    carry = 0
    for k in range(digits.size):
        whole = digits[k] + carry
        work[k] = whole & MASK
        carry = whole >> 32
    work[digits.size] = carry & MASK
    negative = carry < 0
    if negative:
        carry = 1
        for k in range(work.size):
            whole = (~work[k] & MASK) + carry
            work[k] = whole & MASK
            carry = whole >> 32
    top = work.size - 1
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
    power = (base + top) * DIGIT + width - 1 + LOWEST - 52
    value = math.ldexp(float(mantissa), power)
    return -value if negative else value
