"""Sliding lookups over a sparse layout: cells (group, words) in order of pane.

`bounds[p]..bounds[p+1]` are the cells of pane p. Windows that advance together pay for the cells that enter and
leave; a window that goes back starts anew.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.combine import ADD, ADD_FLOATS, AFFINE, MAX, MIN
from windrow.kernels.jit import Codes, Ints, kernel


@kernel
def order_cells(keys: Ints, rank: Ints, ends: Ints, order: Ints) -> None:
    """A counting sort of cells by the rank of their slot (key >> 32): order, and where each rank ends."""
    ends[:] = 0
    for c in range(keys.size):
        ends[rank[keys[c] >> 32]] += 1
    total = 0
    for r in range(ends.size):
        total += ends[r]
        ends[r] = total - ends[r]
    for c in range(keys.size):
        r = rank[keys[c] >> 32]
        order[ends[r]] = c
        ends[r] += 1


@kernel
def list_present_cells(
    bounds: Ints, gids: Ints, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes
) -> None:
    """The groups of each window, ascending, from offsets[i] on; also fills `offsets`."""
    counts = np.zeros(groups + 64, np.int32)
    blocks = np.zeros(groups // 64 + 1, np.int32)  # groups present among 64: most of an almost empty range is skipped
    low = 0
    high = 0
    at = 0
    offsets[0] = 0
    for i in range(first.size):
        start = bounds[first[i]]
        stop = bounds[last[i]]
        if start < low or stop < high or start >= high:
            for c in range(low, high):
                counts[gids[c]] = 0
                blocks[gids[c] >> 6] = 0
            low = start
            high = start
        for c in range(low, start):
            g = gids[c]
            counts[g] -= 1
            blocks[g >> 6] -= counts[g] == 0
        for c in range(high, stop):
            g = gids[c]
            blocks[g >> 6] += counts[g] == 0
            counts[g] += 1
        low = start
        high = stop
        for block in range(blocks.size):
            if blocks[block] > 0:
                end = at + blocks[block]
                g = block << 6
                while at < end:
                    # Written before it is known to be wanted: no branch to mispredict.
                    present[at] = g
                    at += counts[g] > 0
                    g += 1
        offsets[i + 1] = at


@kernel
def slide_sums(
    bounds: Ints,
    gids: Ints,
    cells: Ints,
    first: Ints,
    last: Ints,
    groups: int,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """Subtractable words: add the cells that enter, subtract those that leave; cells are [cells, words, 1]."""
    words = cells.shape[1]
    sums = np.zeros((groups, words), np.int64)
    low = 0
    high = 0
    for i in range(first.size):
        start = bounds[first[i]]
        stop = bounds[last[i]]
        if start < low or stop < high or start >= high:
            for c in range(low, high):
                sums[gids[c]] = 0
            low = start
            high = start
        for c in range(low, start):
            for w in range(words):
                sums[gids[c], w] -= cells[c, w, 0]
        for c in range(high, stop):
            for w in range(words):
                sums[gids[c], w] += cells[c, w, 0]
        low = start
        high = stop
        for w in range(words):
            for k in range(offsets[i], offsets[i + 1]):
                out[w, k] = sums[present[k], w]


@kernel
def scan_cells(
    op: int,
    bounds: Ints,
    gids: Ints,
    cells: Ints,
    first: Ints,
    last: Ints,
    groups: int,
    identity: Ints,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """Any operator: combine the cells of each window straight into its answers.

    A window may leave groups out: their place is then that of an earlier window, or none, and before offsets[i].
    """
    place = np.full(groups, -1, np.int64)
    floats = cells.view(np.float64)
    answers = out.view(np.float64)
    for i in range(first.size):
        for k in range(offsets[i], offsets[i + 1]):
            place[present[k]] = k
            for w in range(identity.size):
                out[w, k] = identity[w]
        begin = offsets[i]
        start = bounds[first[i]]
        stop = bounds[last[i]]
        if op == ADD:
            for c in range(start, stop):
                k = place[gids[c]]
                if k >= begin:
                    for w in range(identity.size):
                        out[w, k] += cells[c, w, 0]
        elif op == MIN:
            for c in range(start, stop):
                k = place[gids[c]]
                if k >= begin:
                    out[0, k] = min(out[0, k], cells[c, 0, 0])
        elif op == MAX:
            for c in range(start, stop):
                k = place[gids[c]]
                if k >= begin:
                    out[0, k] = max(out[0, k], cells[c, 0, 0])
        elif op == ADD_FLOATS:
            for c in range(start, stop):
                k = place[gids[c]]
                if k < begin:
                    continue
                x = answers[0, k]
                y = floats[c, 0, 0]
                total = x + y
                part = total - x
                answers[1, k] += floats[c, 1, 0] + ((x - (total - part)) + (y - part))
                answers[0, k] = total
        elif op == AFFINE:
            for c in range(start, stop):
                k = place[gids[c]]
                if k < begin:
                    continue
                out[0, k] *= cells[c, 0, 0]
                out[1, k] = out[1, k] * cells[c, 0, 0] + cells[c, 1, 0]
        else:  # MOMENTS: Chan, Golub, LeVeque
            for c in range(start, stop):
                k = place[gids[c]]
                if k < begin:
                    continue
                n = answers[0, k]
                m = floats[c, 0, 0]
                if n == 0.0:
                    for w in range(3):
                        answers[w, k] = floats[c, w, 0]
                elif m > 0.0:
                    both = n + m
                    delta = floats[c, 1, 0] - answers[1, k]
                    answers[1, k] += delta * (m / both)
                    answers[2, k] += floats[c, 2, 0] + delta * delta * (n * (m / both))
                    answers[0, k] = both
