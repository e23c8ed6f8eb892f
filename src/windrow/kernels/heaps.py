"""Pairing heaps of slots, one per group, in flat arrays (Fredman, Sedgewick, Sleator, Tarjan 1986).

The greatest key of a group is at its root. A slot that comes costs O(1), one that goes O(log n) amortised, wherever it
is in the heap: so rows may end in any order, whether their end was known or they are cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

NONE = -1


@kernel
def sweep_heaps(
    by_cell: Ints,
    cells: Codes,
    cell_groups: Codes,
    begins: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    slots: Ints,
    keys: Ints,
    child: Ints,
    after: Ints,
    before: Ints,
    root: Ints,
    out: Ints,
) -> None:
    """Apply the events in the order of cells; out[c] becomes the greatest key at cell c, untouched when there is none.

    The other arrays are by slot; `before` is the sibling to the left, or the parent of a first child.
    """
    for i in range(by_cell.size):
        event = by_cell[i]
        cell = cells[event]
        group = cell_groups[cell]
        if valid[event]:
            if begins[event]:
                _insert(slots[event], group, keys, child, after, before, root)
            else:
                _remove(slots[event], group, keys, child, after, before, root)
        done = i + 1 == by_cell.size or cells[by_cell[i + 1]] != cell
        if done and root[group] != NONE:
            out[cell] = keys[root[group]]


@kernel
def fill_heaps(slots: Ints, groups: Codes, keys: Ints, child: Ints, after: Ints, before: Ints, root: Ints) -> None:
    """Put slots into the heaps of their groups."""
    for i in range(slots.size):
        _insert(slots[i], groups[i], keys, child, after, before, root)


@kernel
def _insert(slot: int, group: int, keys: Ints, child: Ints, after: Ints, before: Ints, root: Ints) -> None:
    child[slot] = NONE
    after[slot] = NONE
    before[slot] = NONE
    if root[group] == NONE:
        root[group] = slot
    else:
        root[group] = _meld(root[group], slot, keys, child, after, before)


@kernel
def _remove(slot: int, group: int, keys: Ints, child: Ints, after: Ints, before: Ints, root: Ints) -> None:
    below = _joined(child[slot], keys, child, after, before)
    if root[group] == slot:
        root[group] = below
        return
    left = before[slot]
    if child[left] == slot:
        child[left] = after[slot]
    else:
        after[left] = after[slot]
    if after[slot] != NONE:
        before[after[slot]] = left
    if below != NONE:
        root[group] = _meld(root[group], below, keys, child, after, before)


@kernel
def _joined(first: int, keys: Ints, child: Ints, after: Ints, before: Ints) -> int:
    """The siblings from `first` on as one heap: pairs from left to right, then all of them from right to left."""
    done = NONE
    while first != NONE:
        second = after[first]
        pair = first
        following = NONE
        if second != NONE:
            following = after[second]
            after[first] = NONE
            after[second] = NONE
            pair = _meld(first, second, keys, child, after, before)
        after[pair] = done
        done = pair
        first = following
    if done == NONE:
        return NONE
    result = done
    done = after[result]
    after[result] = NONE
    while done != NONE:
        following = after[done]
        after[done] = NONE
        result = _meld(result, done, keys, child, after, before)
        done = following
    before[result] = NONE
    return result


@kernel
def _meld(a: int, b: int, keys: Ints, child: Ints, after: Ints, before: Ints) -> int:
    """One heap of two roots: the smaller one becomes the first child of the other."""
    if keys[a] < keys[b]:
        a, b = b, a
    after[b] = child[a]
    if child[a] != NONE:
        before[child[a]] = b
    before[b] = a
    child[a] = b
    after[a] = NONE
    before[a] = NONE
    return a
