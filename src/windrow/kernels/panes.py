"""Pane assignment: which pane (lo, hi] holds each row. One comparison per row while rows stay in one pane."""

from __future__ import annotations

from windrow.kernels.jit import Codes, Ints, kernel

MIN_TICK = -(1 << 63)
MAX_TICK = (1 << 63) - 1
HASH = -7046029254386353131  # 2**64 / golden ratio, odd: Fibonacci hashing


@kernel
def assign_panes(
    ts: Ints,
    begin: int,
    steps: Ints,
    phases: Ints,
    edges: Ints,
    count: int,
    table: Codes,
    shift: int,
    slots: Codes,
) -> tuple[int, int]:
    """Write the slot of each row's pane from row `begin` on; new panes take the next slot and enter `edges`.

    `table` is an open-addressing hash table edge -> slot (-1 is free). Returns (rows done, panes); fewer rows than
    given means that `edges` is full and the caller must enlarge both before it goes on.
    """
    mask = table.size - 1
    lo = 0
    hi = 0
    slot = -1
    for i in range(begin, ts.size):
        t = ts[i]
        if slot < 0 or t <= lo or t > hi:
            # Only values in [0, step] are added to or taken from the limits, so no timestamp can overflow.
            hi = MAX_TICK
            lo = MIN_TICK
            for p in range(steps.size):
                step = steps[p]
                up = phases[p] - t % step
                if up < 0:
                    up += step
                if t <= MAX_TICK - up and t + up < hi:
                    hi = t + up
                down = step - up
                if t >= MIN_TICK + down and t - down > lo:
                    lo = t - down
            h = ((hi * HASH) >> shift) & mask
            while table[h] >= 0 and edges[table[h]] != hi:
                h = (h + 1) & mask
            slot = table[h]
            if slot < 0:
                if count == edges.size:
                    return i, count
                slot = count
                edges[count] = hi
                table[h] = slot
                count += 1
        slots[i] = slot
    return ts.size, count


@kernel
def index_panes(edges: Ints, count: int, table: Codes, shift: int) -> None:
    """Fill an empty table with the first `count` edges."""
    mask = table.size - 1
    for slot in range(count):
        h = ((edges[slot] * HASH) >> shift) & mask
        while table[h] >= 0:
            h = (h + 1) & mask
        table[h] = slot
