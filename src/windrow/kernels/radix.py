"""Sorting pairs of integers by counting their digits: O(n) per 11 bits that differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Ints, kernel

BITS = 11
DIGITS = 1 << BITS
"""Few enough that the ends of all runs stay in the cache."""
FEW = 1 << 12
"""Below so many pairs a sort by comparing is as fast."""

Keys = NDArray[np.uint64]


@kernel
def radix_pass(keys: Keys, order: Ints, shift: int, out_keys: Keys, out_order: Ints) -> bool:
    """Sort by one digit, keeping the order of equal ones; False, with nothing done, if all have the same digit."""
    counts = np.zeros(DIGITS, np.int64)
    bits = np.uint64(shift)
    low = np.uint64(DIGITS - 1)
    for i in range(keys.size):
        counts[(keys[i] >> bits) & low] += 1
    total = 0
    for digit in range(DIGITS):
        here = counts[digit]
        if here == keys.size:
            return False
        counts[digit] = total
        total += here
    for i in range(keys.size):
        digit = (keys[i] >> bits) & low
        place = counts[digit]
        out_keys[place] = keys[i]
        out_order[place] = order[i]
        counts[digit] = place + 1
    return True


def order_pairs(first: Ints, second: Ints) -> Ints:
    """The places of the pairs in the order of `first`, then `second`."""
    if len(first) < FEW:
        return np.asarray(np.lexsort((second, first)))
    order, spare = np.arange(len(first)), np.empty(len(first), np.int64)
    for values in (second, first):
        # Counted from the smallest one, most numbers have few digits; the difference of two int64 fits in a uint64.
        keys = (values.view(np.uint64) - np.asarray(values.min(), np.int64).view(np.uint64))[order]
        others = np.empty_like(keys)
        for shift in range(0, int(keys.max()).bit_length(), BITS):
            if radix_pass(keys, order, shift, others, spare):
                keys, others, order, spare = others, keys, spare, order
    return order
