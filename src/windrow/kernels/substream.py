"""Substream filters on flat arrays: the levels of CI-COUNT and CI-SUM, and a search structure over each level.

Every level keeps one timestamp per key in an implicit tree of fan-out 8, one row of `newest` per level: first the
leaves (one per key), then the greatest of every 8 neighbours, then the greatest of every 8 of these, and so on; eight
neighbours are one cache line. `starts[h]` is where height h begins. `oldest` has the smallest instead, without leaves.
Timestamps of a level only move forward, so the greatest above a leaf are raised on the way up and never searched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

NEVER = -(1 << 63)
"""The timestamp of an element that does not exist."""
LENGTH_LIMIT = 1 << 62


@kernel
def move(newest: Ints, oldest: Ints, starts: Ints, level: int, key: int, tick: int) -> None:
    """The timestamp of a key in a level becomes `tick`, which is not below the one before."""
    row = newest[level]
    before = row[key]
    if tick == before:
        return
    row[key] = tick
    node = key
    for h in range(1, starts.size - 1):
        node >>= 3
        if row[starts[h] + node] >= tick:
            break
        row[starts[h] + node] = tick
    low = oldest[level]
    leaves = starts[1]
    node = key
    for h in range(1, starts.size - 1):
        node >>= 3
        at = starts[h] + node - leaves
        if low[at] < before:
            break
        children = starts[h - 1] + 8 * node
        least = row[children] if h == 1 else low[children - leaves]
        for c in range(children + 1, children + 8):
            least = min(least, row[c] if h == 1 else low[c - leaves])
        before = low[at]
        if least == before:
            break
        low[at] = least


@kernel
def build(newest: Ints, oldest: Ints, starts: Ints) -> None:
    """Fill everything above the leaves anew."""
    leaves = starts[1]
    for level in range(newest.shape[0]):
        row = newest[level]
        low = oldest[level]
        for h in range(1, starts.size - 1):
            for node in range((starts[h] - starts[h - 1]) >> 3):
                children = starts[h - 1] + 8 * node
                most = row[children]
                least = row[children] if h == 1 else low[children - leaves]
                for c in range(children + 1, children + 8):
                    most = max(most, row[c])
                    least = min(least, row[c] if h == 1 else low[c - leaves])
                row[starts[h] + node] = most
                low[starts[h] + node - leaves] = least


@kernel
def _bits(number: int) -> int:
    """How many binary digits a number has."""
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits


@kernel
def push(
    newest: Ints, oldest: Ints, starts: Ints, lengths: Ints, p: int, farthest: int, key: int, tick: int, copies: int
) -> None:
    """UPDATE of 002 Figure 7 for p levels of each size and for several copies of one element at once.

    Level e * p + r keeps the element whose position is a multiple of 2**e and whose distance from the end (the last
    element has distance 0 here) is in [p * (2**e - 1) + r * 2**e, … + 2**e). With the length m that is position
    (((m + p) >> e) - p - r) << e. So the levels of size 2**e change when (m + p) >> e does.
    """
    # More copies than the farthest level looks back fill every level; how many more does not matter.
    copies = min(copies, farthest)
    before = lengths[key]
    after = before + copies
    lengths[key] = after if after < LENGTH_LIMIT else after - (LENGTH_LIMIT >> 1)
    classes = newest.shape[0] // p
    e = min(_bits((before + p) ^ (after + p)), classes) - 1
    if copies == 1:  # the common case of what follows: every level takes over from the one before it
        for level in range((e + 1) * p - 1, 0, -1):
            move(newest, oldest, starts, level, key, newest[level - 1, key])
        move(newest, oldest, starts, 0, key, tick)
        return
    while e >= 0:
        head = ((after + p) >> e) - p
        for r in range(p - 1, -1, -1):
            position = (head - r) << e
            if position > before:
                move(newest, oldest, starts, e * p + r, key, tick)
            elif position > 0:
                # It was in a level before this one, which is not overwritten yet.
                distance = before - position
                size = e
                while p * ((1 << size) - 1) > distance:
                    size -= 1
                source = size * p + ((distance - p * ((1 << size) - 1)) >> size)
                move(newest, oldest, starts, e * p + r, key, newest[source, key])
        e -= 1


@kernel
def push_all(
    newest: Ints,
    oldest: Ints,
    starts: Ints,
    lengths: Ints,
    p: int,
    farthest: int,
    keys: Codes,
    ticks: Ints,
    copies: Ints,
) -> int:
    """Push elements one after the other; -1, or the place of the first that is older than the last one of its key."""
    for i in range(keys.size):
        if ticks[i] < newest[0, keys[i]]:
            return i
        if copies[i] > 0:
            push(newest, oldest, starts, lengths, p, farthest, keys[i], ticks[i], copies[i])
    return -1


@kernel
def raise_all(newest: Ints, oldest: Ints, starts: Ints, bounds: Ints, keys: Codes, ticks: Ints, values: Ints) -> int:
    """Level 0 sees every element, level j + 1 those with a value > bounds[j]; returns as `push_all` does."""
    for i in range(keys.size):
        if ticks[i] < newest[0, keys[i]]:
            return i
        move(newest, oldest, starts, 0, keys[i], ticks[i])
        level = 0
        while level < bounds.size and values[i] > bounds[level]:
            level += 1
            move(newest, oldest, starts, level, keys[i], ticks[i])
    return -1


@kernel
def list_above(newest: Ints, starts: Ints, level: int, start: int, spare: Codes, found: Codes) -> int:
    """The keys with a timestamp > start, ascending, in `found`; says how many.

    Every node visited has such a key below it or is a neighbour of one that has: at most 8 per key and height.
    """
    row = newest[level]
    top = starts.size - 2
    count = 0
    # The nodes of each height go to the two buffers in turn, such that the leaves come to `found`.
    into = spare if top & 1 else found
    for node in range(starts[top + 1] - starts[top]):
        into[count] = node
        count += row[starts[top] + node] > start
    for h in range(top - 1, -1, -1):
        nodes = into
        into = spare if h & 1 else found
        below = 0
        for n in range(count):
            child = nodes[n] << 3
            at = starts[h] + child
            for c in range(8):
                # Written before it is known to be wanted: no branch to mispredict.
                into[below] = child + c
                below += row[at + c] > start
        count = below
    return count


@kernel
def list_between(
    newest: Ints, oldest: Ints, starts: Ints, near: int, far: int, start: int, spare: Codes, found: Codes
) -> int:
    """The keys with a timestamp > start in level `near` and none in level `far`, ascending; says how many."""
    row = newest[near]
    low = oldest[far]
    leaves = starts[1]
    top = starts.size - 2
    count = 0
    into = spare if top & 1 else found
    for node in range(starts[top + 1] - starts[top]):
        at = starts[top] + node
        into[count] = node
        least = newest[far, at] if top == 0 else low[at - leaves]
        count += (row[at] > start) & (least <= start)
    for h in range(top - 1, -1, -1):
        nodes = into
        into = spare if h & 1 else found
        below = 0
        for n in range(count):
            child = nodes[n] << 3
            at = starts[h] + child
            for c in range(8):
                into[below] = child + c
                least = newest[far, at + c] if h == 0 else low[at + c - leaves]
                below += (row[at + c] > start) & (least <= start)
        count = below
    return count


@kernel
def list_all(
    newest: Ints,
    oldest: Ints,
    starts: Ints,
    likely: Ints,
    certain: Ints,
    below: bool,
    begins: Ints,
    first: int,
    offsets: Ints,
    spare: Codes,
    found: Codes,
    sure: NDArray[np.bool_],
) -> int:
    """Several lookups from number `first` on, until there may be no room for one more; says where it stopped.

    Above: the keys of level likely[i] that are in the window; those that are so in level certain[i] are sure. Below:
    the keys that are in the window but not in level likely[i]; those that are not in level certain[i] are sure.
    """
    room = starts[1]
    for i in range(first, begins.size):
        at = offsets[i]
        if at + room > found.size:
            return i
        place = found[at:]
        if below:
            count = list_between(newest, oldest, starts, 0, likely[i], begins[i], spare, place)
        else:
            count = list_above(newest, starts, likely[i], begins[i], spare, place)
        for n in range(count):
            inside = newest[certain[i], place[n]] > begins[i]
            sure[at + n] = inside != below
        offsets[i + 1] = at + count
    return begins.size
