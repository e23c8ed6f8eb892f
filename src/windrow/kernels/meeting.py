"""Rows that meet in a join: their common lifetime."""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel


@kernel
def meet(which: Ints, slots: Ints, ts: Ints, exp: Ints, held_ts: Ints, held_exp: Ints, begin: Ints, end: Ints) -> int:
    """Of pairs (which, slot) those whose lifetimes intersect move to the front, and their lifetime is written down.

    Returns how many there are.
    """
    given = 0
    for i in range(which.size):
        left = which[i]
        right = slots[i]
        later = max(ts[left], held_ts[right])
        sooner = min(exp[left], held_exp[right])
        if later < sooner:
            which[given] = left
            slots[given] = right
            begin[given] = later
            end[given] = sooner
            given += 1
    return given
