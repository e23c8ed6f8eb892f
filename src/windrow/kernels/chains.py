"""Chains of rows: from each key's newest row back to its older ones, as row numbers in flat arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

NONE = -1


@kernel
def link_rows(keys: Codes, base: int, heads: Ints, previous: Ints) -> None:
    """Rows base, base+1, … come, one of each key given; `heads` are the newest row of each key."""
    for i in range(keys.size):
        previous[base + i] = heads[keys[i]]
        heads[keys[i]] = base + i


@kernel
def last_rows(
    keys: Codes,
    base: int,
    stops: Ints,
    window: int,
    done: int,
    heads: Ints,
    previous: Ints,
    numbers: Ints,
    origin: int,
    skip: int,
    count: int,
    rows: Ints,
    windows: Ints,
) -> tuple[int, int, int]:
    """The newest rows of every key once stops[w] of the new rows have come, for as many w >= `window` as fit.

    Of each key rows skip … skip+count-1 are given, newest first, as far as their number is above `origin`. `heads` are
    those after `done` new rows, and move on. Returns (next window, new rows done, rows given). Cost: the new rows, and
    the keys and rows of each window.
    """
    given = 0
    while window < stops.size:
        while done < stops[window]:
            heads[keys[done]] = base + done
            done += 1
        if rows.size - given < base + done:  # no window holds more
            break
        for key in range(heads.size):
            row = heads[key]
            place = 0
            while row != NONE and place < skip + count and numbers[row] > origin:
                if place >= skip:
                    rows[given] = row
                    windows[given] = window
                    given += 1
                place += 1
                row = previous[row]
        window += 1
    return window, done, given


@kernel
def mark_rows(heads: Ints, previous: Ints, reach: int, marked: NDArray[np.bool_]) -> None:
    """Mark the newest `reach` rows of every key."""
    for key in range(heads.size):
        row = heads[key]
        place = 0
        while row != NONE and place < reach:
            marked[row] = True
            place += 1
            row = previous[row]
