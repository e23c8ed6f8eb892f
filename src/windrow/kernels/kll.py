"""Counted values of windows that slide -> the levels of KLL sketches (Karnin, Lang & Liberty 2016), without coins.

A value of weight w stands in level h for every bit h of w. When that makes more items than a sketch has room for, the
running sums of the weights are rounded to multiples of 2**h, for the smallest h with which the items fit: a rank is off
by at most 2**(h-1). Moves, places and windows are those of `frequency`.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.frequency import LEAVING, PIECES
from windrow.kernels.jit import Codes, Ints, kernel

LEVELS = 63
"""Bits that a count may have."""
BLOCK = 32
"""Places that are looked at only if one of them has a count: a lookup may have far more places than a window."""


@kernel
def levels(
    order: Ints,
    moves: Ints,
    offsets: Ints,
    present: Codes,
    places: Codes,
    counts: Ints,
    starts: Ints,
    stops: Ints,
    capacities: Ints,
    bounds: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """The places that are items, level by level and ascending in each; items per row and level; weights; extremes.

    Row r has room for bounds[r] .. bounds[r+1]; the places of group g that count are starts[g] .. stops[g]-1. A sketch
    of l levels has room for capacities[l]. O(1) per move, O(present values · log weight + places / BLOCK) per row.
    """
    items = np.zeros(bounds[-1], np.int64)
    sizes = np.zeros((present.size, LEVELS), np.int64)
    totals = np.zeros(present.size, np.int64)
    extremes = np.zeros((2, present.size), np.int64)
    count = np.zeros(starts[-1], np.int64)
    blocks = np.zeros(starts[-1] // BLOCK + 1, np.int64)
    there, weights = np.empty_like(count), np.empty_like(count)
    for w in order:
        for piece in range(PIECES):
            sign = -1 if piece < LEAVING else 1
            for e in range(moves[w, piece, 0], moves[w, piece, 1]):
                p = places[e]
                before = count[p]
                count[p] = before + sign * counts[e]
                if before == 0 or count[p] == 0:
                    blocks[p // BLOCK] += sign
        for row in range(offsets[w], offsets[w + 1]):
            many = _gather(starts[present[row]], stops[present[row]], count, blocks, there, weights)
            if many == 0:
                continue
            total = weights[:many].sum()
            totals[row] = total
            extremes[0, row], extremes[1, row] = there[0], there[many - 1]
            bit = 0
            while not _fits(weights[:many], total, bit, capacities, sizes[row]):
                bit += 1
            _fill(there[:many], weights, total, bit, sizes[row], items[bounds[row] : bounds[row + 1]])
    return items, sizes, totals, extremes


@kernel
def _gather(first: int, last: int, count: Ints, blocks: Ints, there: Ints, weights: Ints) -> int:
    """The places first .. last-1 that have a count, ascending, with it; says how many. Empty blocks are skipped."""
    many = 0
    p = first
    while p < last:
        end = min(last, (p // BLOCK + 1) * BLOCK)
        if blocks[p // BLOCK] > 0:
            for q in range(p, end):
                if count[q] != 0:
                    there[many], weights[many] = q, count[q]
                    many += 1
        p = end
    return many


@kernel
def _rounded(seen: int, total: int, bit: int) -> int:
    """A running sum as a multiple of 2**bit; the last one is the total."""
    if seen == total:
        return total
    return min(total, (seen + ((1 << bit) >> 1)) >> bit << bit)


@kernel
def _fits(weights: Ints, total: int, bit: int, capacities: Ints, sizes: Ints) -> bool:
    """Count the items of each level, and say whether there is room for them."""
    sizes[:] = 0
    seen, before, many, top = 0, 0, 0, 0
    for i in range(weights.size):
        seen += weights[i]
        end = _rounded(seen, total, bit)
        weight = end - before
        before = end
        level = 0
        while weight:
            if weight & 1:
                sizes[level] += 1
                many += 1
                top = max(top, level)
            weight >>= 1
            level += 1
        if many > capacities[-1]:
            return False
    return bool(many <= capacities[top + 1])


@kernel
def _fill(there: Ints, weights: Ints, total: int, bit: int, sizes: Ints, items: Ints) -> None:
    """Put each place into the levels of its weight."""
    at = np.zeros(LEVELS, np.int64)
    for level in range(1, LEVELS):
        at[level] = at[level - 1] + sizes[level - 1]
    seen, before = 0, 0
    for i in range(there.size):
        seen += weights[i]
        end = _rounded(seen, total, bit)
        weight = end - before
        before = end
        level = 0
        while weight:
            if weight & 1:
                items[at[level]] = there[i]
                at[level] += 1
            weight >>= 1
            level += 1
