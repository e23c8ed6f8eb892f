"""Which rows are in places skip … skip+count-1 of an order while rows come and go: a sweep over the events of an epoch.

Rows are known by their rank. A Fenwick tree counts the live ones before any rank, so that the two ranks between which
the chosen rows lie are found in O(log n); only rows that such a bound passes, that come or that go are touched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Ints, kernel

NEVER = (1 << 63) - 1
OUTSIDE = -2
STANDING = -1


@kernel
def sweep_top(
    alive: NDArray[np.bool_], ranks: Ints, times: Ints, begins: NDArray[np.bool_], skip: int, count: int
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(ranks, begins, ends) of the rows that are chosen anew, and (ranks, times) of rows that were and are no more.

    `alive` is by rank, and moves on; the events (ranks, times, begins) are in the order of time.
    """
    size = alive.size
    tree = np.zeros(size + 1, np.int64)
    for rank in range(size):
        if alive[rank]:
            tree[rank + 1] += 1
        parent = (rank + 1) + ((rank + 1) & -(rank + 1))
        if parent <= size:
            tree[parent] += tree[rank + 1]
    low = _select(tree, skip)
    high = _select(tree, skip + count)
    # Of each rank: OUTSIDE, STANDING since an earlier epoch, or the number of its row here.
    place = np.full(size, OUTSIDE, np.int64)
    for rank in range(low, high):
        if alive[rank]:
            place[rank] = STANDING
    made: Ints = np.empty(64, np.int64)
    since: Ints = np.empty(64, np.int64)
    until: Ints = np.empty(64, np.int64)
    rows = 0
    cut: Ints = np.empty(64, np.int64)
    cut_at: Ints = np.empty(64, np.int64)
    cuts = 0
    entering: Ints = np.empty(64, np.int64)
    first = 0
    while first < ranks.size:
        now = times[first]
        last = first
        while last < ranks.size and times[last] == now:
            rank = ranks[last]
            alive[rank] = begins[last]
            _add(tree, rank, 1 if begins[last] else -1)
            last += 1
        new_low = _select(tree, skip)
        new_high = _select(tree, skip + count)
        # What is touched: rows with an event, and live rows between the old and the new bounds.
        touched = 0
        for k in range(first, last):
            if touched == entering.size:
                entering = _longer(entering)
            entering[touched] = ranks[k]
            touched += 1
        for old, new in ((low, new_low), (high, new_high)):
            start = min(old, new)
            stop = max(old, new)
            position = _before(tree, start)
            rank = _select(tree, position)
            while rank < stop:
                if touched == entering.size:
                    entering = _longer(entering)
                entering[touched] = rank
                touched += 1
                position += 1
                rank = _select(tree, position)
        low = new_low
        high = new_high
        for k in range(touched):
            rank = entering[k]
            wanted = alive[rank] and low <= rank < high
            if place[rank] != OUTSIDE and not wanted:
                if place[rank] == STANDING:
                    if cuts == cut.size:
                        cut = _longer(cut)
                        cut_at = _longer(cut_at)
                    cut[cuts] = rank
                    cut_at[cuts] = now
                    cuts += 1
                else:
                    until[place[rank]] = now
                place[rank] = OUTSIDE
            elif place[rank] == OUTSIDE and wanted:
                if rows == made.size:
                    made = _longer(made)
                    since = _longer(since)
                    until = _longer(until)
                made[rows] = rank
                since[rows] = now
                until[rows] = NEVER
                place[rank] = rows
                rows += 1
        first = last
    return made[:rows], since[:rows], until[:rows], cut[:cuts], cut_at[:cuts]


@kernel
def _add(tree: Ints, rank: int, change: int) -> None:
    k = rank + 1
    while k < tree.size:
        tree[k] += change
        k += k & -k


@kernel
def _before(tree: Ints, rank: int) -> int:
    """How many live rows have a smaller rank."""
    total = 0
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def _select(tree: Ints, position: int) -> int:
    """The rank of the live row with so many before it; the number of ranks when there is none."""
    step = 1
    while step * 2 < tree.size:
        step *= 2
    at = 0
    left = position
    while step > 0:
        if at + step < tree.size and tree[at + step] <= left:
            at += step
            left -= tree[at]
        step //= 2
    return at


@kernel
def _longer(array: Ints) -> Ints:
    longer = np.empty(2 * array.size, np.int64)
    longer[: array.size] = array
    return longer
