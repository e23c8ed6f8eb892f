"""DISTINCT as lists have it: of the copies of a row that are held, one after the other stands for it."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints, kernel


@kernel
def choose_copies(firsts: Ints, since: Ints, ts: Ints, exp: Ints, upto: int, most: int) -> tuple[Ints, Ints]:
    """Which copies stand for their rows, and from when on, until one lives longer than `upto` or none is left.

    Row i has the copies firsts[i] … firsts[i+1]-1, with these lifetimes, and nothing stands for it from since[i] on.
    The copy that lives longest takes over. There are at most `most` choices. O(copies) for each.
    """
    chosen = np.empty(most, np.int64)
    begins = np.empty(most, np.int64)
    count = 0
    for i in range(since.size):
        now = since[i]
        while now <= upto:
            best = -1
            later = upto + 1
            for k in range(firsts[i], firsts[i + 1]):
                if ts[k] > now:
                    later = min(later, ts[k])
                elif exp[k] > now and (best < 0 or exp[k] > exp[best]):
                    best = k
            if best < 0:
                now = later
                continue
            chosen[count] = best
            begins[count] = now
            count += 1
            now = exp[best]
    return chosen[:count], begins[:count]
