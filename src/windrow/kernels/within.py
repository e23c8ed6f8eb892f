"""Groups whose sum in a window lies between two bounds: HAVING decided on prefix sums, before anything is looked up.

A sum is one word, or two halves of 32 bits that may have carried (`aggregates.sums`); a sum of halves that does not fit
in 64 bits is kept, so that whoever lowers it can say so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel


@kernel
def list_within(
    prefixes: Ints,
    rows: Ints,
    first: Ints,
    last: Ints,
    groups: int,
    low: Ints,
    high: Ints,
    done: int,
    offsets: Ints,
    present: Codes,
) -> int:
    """The groups of each window that have rows and a sum in low … high, ascending, from offsets[i] on.

    Goes on with window `done`, until there may be no room for one more; says where it stopped. Groups are tested by
    64, which is done in vectors, and listed only where some of them are wanted.
    """
    inside = np.empty(64, np.bool_)
    for i in range(done, first.size):
        at = offsets[i]
        if at + groups + 1 > present.size:
            return i
        upper = prefixes[last[i], 0]
        lower = prefixes[first[i], 0]
        many = rows[last[i], 0]
        few = rows[first[i], 0]
        least = low[i]
        most = high[i]
        halves = prefixes.shape[1] > 1
        # A sum that is not zero comes of some row.
        visible = halves or least <= 0 <= most
        for block in range(0, groups, 64):
            size = min(64, groups - block)
            hits = 0
            if halves:
                for g in range(block, block + size):
                    rest = upper[g] - lower[g]
                    top = prefixes[last[i], 1, g] - prefixes[first[i], 1, g] + (rest >> 32)
                    value = (top << 32) | (rest & 0xFFFFFFFF)
                    inside[g - block] = ((value >= least) & (value <= most)) | ((top >> 31) != (top >> 63))
                    hits += inside[g - block]
            else:
                for g in range(block, block + size):
                    value = upper[g] - lower[g]
                    hits += (value >= least) & (value <= most)
                if hits:
                    for g in range(block, block + size):
                        value = upper[g] - lower[g]
                        inside[g - block] = (value >= least) & (value <= most)
            if hits and visible:
                for g in range(block, block + size):
                    inside[g - block] &= many[g] != few[g]
            if hits:
                for k in range(size):
                    # Written before it is known to be wanted: no branch to mispredict.
                    present[at] = block + k
                    at += inside[k]
        offsets[i + 1] = at
    return first.size


@kernel
def keep_within(words: Ints, offsets: Ints, low: Ints, high: Ints, kept: NDArray[np.bool_], left: Ints) -> None:
    """Which rows of a lookup, given by the words [words, rows] of a sum, are in low … high; `left` are new offsets."""
    total = 0
    left[0] = 0
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            value = words[0, k]
            odd = False
            if words.shape[0] > 1:
                top = words[1, k] + (value >> 32)
                value = (top << 32) | (value & 0xFFFFFFFF)
                odd = (top >> 31) != (top >> 63)
            kept[k] = ((value >= low[i]) & (value <= high[i])) | odd
            total += kept[k]
        left[i + 1] = total
