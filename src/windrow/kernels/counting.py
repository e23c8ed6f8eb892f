"""Equal entries put together: a hash table of (cell, code), so that only different ones are left to sort."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

HASH = -7046029254386353131  # 2**64 / golden ratio, odd: Fibonacci hashing


@kernel
def number_pairs(cells: Ints, codes: Ints, numbers: Codes) -> tuple[Ints, int]:
    """Number the different pairs (cells[i], codes[i]) in the order in which they come first.

    Writes the number of each; returns the row that came first with each number, and how many there are. O(rows).
    """
    size = 16
    table = np.full(size, -1, np.int32)
    firsts = np.empty(size, np.int64)
    count = 0
    for i in range(codes.size):
        if 2 * count >= size:
            size *= 4
            table = np.full(size, -1, np.int32)
            grown = np.empty(size, np.int64)
            grown[:count] = firsts[:count]
            firsts = grown
            for k in range(count):
                h = _slot(cells[firsts[k]], codes[firsts[k]], size)
                while table[h] >= 0:
                    h = (h + 1) & (size - 1)
                table[h] = k
        h = _slot(cells[i], codes[i], size)
        while table[h] >= 0:
            first = firsts[table[h]]
            if codes[first] == codes[i] and cells[first] == cells[i]:
                break
            h = (h + 1) & (size - 1)
        if table[h] < 0:
            table[h] = count
            firsts[count] = i
            count += 1
        numbers[i] = table[h]
    return firsts[:count].copy(), count


@kernel
def add_counts(numbers: Codes, counts: Ints, sums: Ints) -> None:
    """The sum of the counts of each number."""
    for i in range(numbers.size):
        sums[numbers[i]] += counts[i]


@kernel
def note_panes(
    table: Ints, used: int, begin: int, cells: Ints, codes: Ints, panes: Ints, before: Ints
) -> tuple[int, int]:
    """Write the pane in which each pair (cell, code) came last, -1 for never, and note its pane.

    `table` [slots, 3] has cell, code and pane + 1 (0: free). Returns (rows done, slots used); fewer rows than given
    means that the table is half full and the caller must enlarge it before it goes on.
    """
    size = table.shape[0]
    for i in range(begin, codes.size):
        h = _slot(cells[i], codes[i], size)
        while table[h, 2] > 0 and (table[h, 0] != cells[i] or table[h, 1] != codes[i]):
            h = (h + 1) & (size - 1)
        if table[h, 2] == 0:
            if 2 * used >= size:
                return i, used
            used += 1
            table[h, 0], table[h, 1] = cells[i], codes[i]
        before[i] = table[h, 2] - 1
        table[h, 2] = panes[i] + 1
    return codes.size, used


@kernel
def _slot(cell: int, code: int, size: int) -> int:
    mixed = (cell * HASH) ^ code
    mixed = (mixed ^ ((mixed >> 32) & 0xFFFFFFFF)) * HASH
    return (mixed ^ ((mixed >> 32) & 0xFFFFFFFF)) & (size - 1)
