"""Theta sketches: hashes that are new to their cell, and the smallest hashes of unions of panes."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel


@kernel
def fresh_hashes(
    cells: Ints, hashes: Ints, bounds: Ints, table: Codes, shift: int, out_cells: Ints, out_hashes: Ints
) -> int:
    """The different (cell, hash) with a hash below the bound of the cell; the table holds -1 everywhere."""
    mask = table.size - 1
    many = 0
    for i in range(cells.size):
        cell = cells[i]
        value = hashes[i]
        if value >= bounds[cell]:
            continue
        mixed = (np.uint64(value) + np.uint64(cell)) * np.uint64(0x9E3779B97F4A7C15)
        place = np.int64(mixed >> np.uint64(shift))
        while table[place] >= 0 and (out_hashes[table[place]] != value or out_cells[table[place]] != cell):
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = many
            out_cells[many] = cell
            out_hashes[many] = value
            many += 1
    return many


@kernel
def unite(a: Ints, i: int, i_stop: int, b: Ints, j: int, j_stop: int, most: int, out: Ints, at: int) -> int:
    """The smallest of two ascending runs, each once and at most so many, from out[at] on; returns where they end."""
    stop = at + most
    while i < i_stop and j < j_stop and at < stop:
        x = a[i]
        y = b[j]
        out[at] = min(x, y)
        # Both move on past a hash that both have; there is no branch to guess.
        i += x <= y
        j += y <= x
        at += 1
    while i < i_stop and at < stop:
        out[at] = a[i]
        i += 1
        at += 1
    while j < j_stop and at < stop:
        out[at] = b[j]
        j += 1
        at += 1
    return at


@kernel
def unite_cells(
    a: Ints, a_ends: Ints, b: Ints, b_ends: Ints, most: int, bounds: Ints, out: Ints, out_ends: Ints
) -> None:
    """Unite the runs of each cell; a cell that has as many hashes as it may have gets the last one as its bound."""
    for cell in range(bounds.size):
        start = out_ends[cell]
        stop = unite(a, a_ends[cell], a_ends[cell + 1], b, b_ends[cell], b_ends[cell + 1], most, out, start)
        out_ends[cell + 1] = stop
        if stop - start == most:
            bounds[cell] = out[stop - 1]


@kernel
def first_at_least(values: Ints, start: int, stop: int, least: int) -> int:
    """Where the first value that is not below `least` stands among ascending ones."""
    while start < stop:
        middle = (start + stop) // 2
        if values[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def united_windows(
    hashes: Ints,
    cell_panes: Ints,
    cell_starts: Ints,
    cell_stops: Ints,
    group_starts: Ints,
    row_group: Ints,
    row_first: Ints,
    row_last: Ints,
    most: int,
    out: Ints,
    ends: Ints,
) -> None:
    """The `most` smallest hashes of each answer row, one after the other; rows are in order of group.

    Cells group_starts[g]..group_starts[g+1]-1 are those of group g, by pane; each has ascending hashes. A group's base
    intervals (1, 2, 4, … of its cells) are united once; a window is united from O(log panes) of them.
    """
    longest = 1
    for row in range(row_group.size):
        longest = max(longest, row_last[row] - row_first[row])
    levels = np.empty(64, np.int64)
    starts = np.empty(0, np.int64)
    stops = np.empty(0, np.int64)
    scratch = np.empty(0, np.int64)
    one = np.empty(0, np.int64)
    other = np.empty(0, np.int64)
    group = -1
    begin = cells = at = 0
    for row in range(row_group.size):
        if row_group[row] != group:
            group = row_group[row]
            begin = group_starts[group]
            cells = group_starts[group + 1] - begin
            if starts.size < 2 * cells:
                starts = np.empty(2 * cells, np.int64)
                stops = np.empty(2 * cells, np.int64)
            for i in range(cells):
                starts[i] = cell_starts[begin + i]
                stops[i] = cell_stops[begin + i]
            # Where the intervals of each level stand, and how much space they may need.
            levels[0] = 0
            top = 0
            total = 0
            for i in range(cells):
                total += stops[i] - starts[i]
            space = 0
            while 2 << top <= min(cells, longest):
                levels[top + 1] = levels[top] + (cells >> top)
                top += 1
                space += min(total, most * (cells >> top))
            if scratch.size < space:
                scratch = np.empty(space, np.int64)
            if one.size < min(most, total):
                one = np.empty(min(most, total), np.int64)
                other = np.empty(min(most, total), np.int64)
            used = 0
            for level in range(1, top + 1):
                source = hashes if level == 1 else scratch
                for i in range(cells >> level):
                    left = levels[level - 1] + 2 * i
                    node = levels[level] + i
                    starts[node] = used
                    used = unite(
                        source, starts[left], stops[left], source, starts[left + 1], stops[left + 1], most,
                        scratch, used,
                    )  # fmt: skip
                    stops[node] = used
        place = first_at_least(cell_panes, begin, begin + cells, row_first[row]) - begin
        stop = first_at_least(cell_panes, begin, begin + cells, row_last[row]) - begin
        size = 0
        while place < stop:
            level = 0
            while place & ((2 << level) - 1) == 0 and place + (2 << level) <= stop:
                level += 1
            node = levels[level] + (place >> level)
            source = hashes if level == 0 else scratch
            size = unite(one, 0, size, source, starts[node], stops[node], most, other, 0)
            one, other = other, one
            place += 1 << level
        out[at : at + size] = one[:size]
        at += size
        ends[row] = at
