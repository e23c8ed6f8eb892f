"""ROWS windows: which rows enter and leave when rows arrive, per key, O(1) each.

Every key has a chain of its rows, oldest first, with two fingers: the next row to enter (OFFSET rows behind the newest)
and the next one to leave (ROWS behind that).
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

NONE = -1


@kernel
def arrive(
    codes: Codes,
    times: Ints,
    first_slot: int,
    offset: int,
    count: int,
    arrived: Ints,
    last: Ints,
    entering: Ints,
    leaving: Ints,
    following: Ints,
    begins: Ints,
    ends: Ints,
    entered: Ints,
    left: Ints,
) -> tuple[int, int]:
    """Rows arrive in order at slots first_slot, …; gives how many have entered and left, and which, with the times."""
    ins = outs = 0
    for i in range(codes.size):
        key = codes[i]
        slot = first_slot + i
        _chain(key, slot, last, following)
        if entering[key] == NONE:
            entering[key] = slot
        if leaving[key] == NONE:
            leaving[key] = slot
        arrived[key] += 1
        if arrived[key] > offset:
            row = entering[key]
            begins[row] = times[i]
            entered[ins] = row
            ins += 1
            entering[key] = following[row]
        if arrived[key] > offset + count:
            row = leaving[key]
            ends[row] = times[i]
            left[outs] = row
            outs += 1
            leaving[key] = following[row]
    return ins, outs


@kernel
def _chain(key: int, slot: int, last: Ints, following: Ints) -> None:
    """The row at `slot` comes behind the last one of its key."""
    following[slot] = NONE
    if last[key] != NONE:
        following[last[key]] = slot
    last[key] = slot


@kernel
def renumber(pointers: Ints, mapping: Ints) -> None:
    """Slots after a compaction."""
    for i in range(pointers.size):
        if pointers[i] != NONE:
            pointers[i] = mapping[pointers[i]]


@kernel
def relink(codes: Codes, begins: Ints, never: int, last: Ints, entering: Ints, leaving: Ints, following: Ints) -> None:
    """Chains and fingers from the rows that have not left, which are in the order of arrival."""
    for slot in range(codes.size):
        key = codes[slot]
        _chain(key, slot, last, following)
        if leaving[key] == NONE:
            leaving[key] = slot
        if entering[key] == NONE and begins[slot] == never:
            entering[key] = slot


def grown(array: Ints, size: int, fill: int) -> Ints:
    """The array with room for `size` entries."""
    if len(array) >= size:
        return array
    bigger = np.full(max(size, 2 * len(array)), fill, np.int64)
    bigger[: len(array)] = array
    return bigger
