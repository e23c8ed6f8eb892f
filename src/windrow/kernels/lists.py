"""Lists of slots by code, doubly linked in flat arrays: append, take out, first of each. O(1) per slot."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

NONE = -1


@kernel
def append_slots(slots: Ints, codes: Codes, first: Ints, last: Ints, after: Ints, before: Ints) -> None:
    """Each slot goes to the end of the list of its code."""
    for i in range(slots.size):
        slot = slots[i]
        code = codes[i]
        after[slot] = NONE
        before[slot] = last[code]
        if last[code] == NONE:
            first[code] = slot
        else:
            after[last[code]] = slot
        last[code] = slot


@kernel
def remove_slots(slots: Ints, codes: Codes, first: Ints, last: Ints, after: Ints, before: Ints) -> None:
    """Take slots out of the lists of their codes."""
    for i in range(slots.size):
        _unlink(slots[i], codes[i], first, last, after, before)


@kernel
def take_first(codes: Codes, first: Ints, last: Ints, after: Ints, before: Ints) -> Ints:
    """The first slot of each code, which leaves its list; NONE where the list is empty."""
    found = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        slot = first[codes[i]]
        found[i] = slot
        if slot != NONE:
            _unlink(slot, codes[i], first, last, after, before)
    return found


@kernel
def _unlink(slot: int, code: int, first: Ints, last: Ints, after: Ints, before: Ints) -> None:
    if before[slot] == NONE:
        first[code] = after[slot]
    else:
        after[before[slot]] = after[slot]
    if after[slot] == NONE:
        last[code] = before[slot]
    else:
        before[after[slot]] = before[slot]


@kernel
def span_cells(cells: Codes, slots: Ints, begins: np.ndarray, begin: Ints, end: Ints) -> None:  # type: ignore[type-arg]
    """Note at which cell the row of a slot begins or ends, event by event."""
    for e in range(cells.size):
        if begins[e]:
            begin[slots[e]] = cells[e]
        else:
            end[slots[e]] = cells[e]


@kernel
def count_members(cell_groups: Codes, first: Ints, after: Ints, begin: Ints, end: Ints) -> Ints:
    """How many rows each cell has: those in the list of its group that begin at or before it and end after it."""
    counts = np.zeros(cell_groups.size + 1, np.int64)
    start = 0
    while start < cell_groups.size:
        stop = start + 1
        while stop < cell_groups.size and cell_groups[stop] == cell_groups[start]:
            stop += 1
        slot = first[cell_groups[start]]
        while slot != NONE:
            low = start if begin[slot] == NONE else begin[slot]
            high = stop if end[slot] == NONE else end[slot]
            if low < high:
                counts[low] += 1
                counts[high] -= 1
            slot = after[slot]
        start = stop
    total = 0
    for c in range(cell_groups.size):
        total += counts[c]
        counts[c] = total
    return counts[: cell_groups.size]


@kernel
def collect_members(
    cell_groups: Codes, first: Ints, after: Ints, begin: Ints, end: Ints, counts: Ints, low: int, high: int
) -> tuple[Ints, Ints]:
    """(slot, cell) of the rows of the cells low … high-1, by cell, the rows of a cell in the order of its list."""
    ends = np.empty(high - low, np.int64)
    total = 0
    for c in range(low, high):
        ends[c - low] = total
        total += counts[c]
    slots = np.empty(total, np.int64)
    cells = np.empty(total, np.int64)
    start = low
    while start < high:
        stop = start + 1
        while stop < high and cell_groups[stop] == cell_groups[start]:
            stop += 1
        slot = first[cell_groups[start]]
        while slot != NONE:
            # A row may begin before this part of its group's cells, or end after it.
            since = start if begin[slot] == NONE else max(start, begin[slot])
            until = stop if end[slot] == NONE else min(stop, end[slot])
            for c in range(since, until):
                slots[ends[c - low]] = slot
                cells[ends[c - low]] = c
                ends[c - low] += 1
            slot = after[slot]
        start = stop
    return slots, cells
