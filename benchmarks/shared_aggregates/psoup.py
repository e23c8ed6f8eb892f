"""The search tree of PSoup (002 section 3.1.3): a red-black tree of the last elements, with the sum of every subtree.

Elements are ordered by their number, so one is always appended at the right and the oldest is removed at the left.
Flat arrays instead of nodes: `left`, `right`, `parent`, `red`, `value`, `total`; node 0 is the nil node. Update and
lookup O(log N). As in libavl, which the paper used, the node of the element that leaves is freed and used again.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import compiled
from windrow.kernels.jit import Ints

LEFT, RIGHT, PARENT, RED, VALUE, TOTAL, ORDER = range(7)
ROOT = 0
"""tree[0, VALUE] holds the root, since the nil node has no value."""


def empty(capacity: int) -> Ints:
    """A tree for so many elements: one row per node."""
    return np.zeros((capacity + 2, 7), np.int64)


@compiled
def _refresh(tree: Ints, node: int) -> None:
    tree[node, TOTAL] = tree[node, VALUE] + tree[tree[node, LEFT], TOTAL] + tree[tree[node, RIGHT], TOTAL]


@compiled
def _rotate(tree: Ints, node: int, side: int) -> None:
    """Turn `node` down to `side`; its child on the other side comes up."""
    other = 1 - side
    child = tree[node, other]
    inner = tree[child, side]
    tree[node, other] = inner
    if inner:
        tree[inner, PARENT] = node
    above = tree[node, PARENT]
    tree[child, PARENT] = above
    if not above:
        tree[ROOT, VALUE] = child
    elif tree[above, LEFT] == node:
        tree[above, LEFT] = child
    else:
        tree[above, RIGHT] = child
    tree[child, side] = node
    tree[node, PARENT] = child
    _refresh(tree, node)
    _refresh(tree, child)


@compiled
def append(tree: Ints, node: int, order: int, value: int) -> None:
    """Insert an element that comes after all others, in a free node."""
    tree[node] = 0
    tree[node, VALUE] = value
    tree[node, TOTAL] = value
    tree[node, ORDER] = order
    at = tree[ROOT, VALUE]
    if not at:
        tree[ROOT, VALUE] = node
        return
    while True:  # compare as a search tree does; nothing here knows that it goes right
        tree[at, TOTAL] += value
        side = RIGHT if order > tree[at, ORDER] else LEFT
        below = tree[at, side]
        if not below:
            tree[at, side] = node
            break
        at = below
    tree[node, PARENT] = at
    tree[node, RED] = 1
    while tree[node, PARENT] and tree[tree[node, PARENT], RED]:
        parent = tree[node, PARENT]
        grand = tree[parent, PARENT]
        side = LEFT if tree[grand, LEFT] == parent else RIGHT
        uncle = tree[grand, 1 - side]
        if tree[uncle, RED]:
            tree[parent, RED] = 0
            tree[uncle, RED] = 0
            tree[grand, RED] = 1
            node = grand
        else:
            if tree[parent, 1 - side] == node:
                node = parent
                _rotate(tree, node, side)
                parent = tree[node, PARENT]
            tree[parent, RED] = 0
            tree[grand, RED] = 1
            _rotate(tree, grand, 1 - side)
    tree[tree[ROOT, VALUE], RED] = 0


@compiled
def remove_oldest(tree: Ints) -> int:
    """Take out the leftmost element; gives its node back."""
    node = int(tree[ROOT, VALUE])
    while tree[node, LEFT]:
        node = int(tree[node, LEFT])
    value = tree[node, VALUE]
    at = tree[node, PARENT]
    while at:
        tree[at, TOTAL] -= value
        at = tree[at, PARENT]
    child = tree[node, RIGHT]
    parent = tree[node, PARENT]
    if child:
        tree[child, PARENT] = parent
    if parent:
        tree[parent, LEFT] = child
    else:
        tree[ROOT, VALUE] = child
    if tree[node, RED]:
        return node
    at = child  # black is missing on the way through `at`, which is the left child of `parent`
    while parent and not tree[at, RED]:
        side = LEFT if tree[parent, LEFT] == at else RIGHT
        sibling = tree[parent, 1 - side]
        if tree[sibling, RED]:
            tree[sibling, RED] = 0
            tree[parent, RED] = 1
            _rotate(tree, parent, side)
            sibling = tree[parent, 1 - side]
        if not tree[tree[sibling, LEFT], RED] and not tree[tree[sibling, RIGHT], RED]:
            tree[sibling, RED] = 1
            at = parent
            parent = tree[at, PARENT]
        else:
            if not tree[tree[sibling, 1 - side], RED]:
                tree[tree[sibling, side], RED] = 0
                tree[sibling, RED] = 1
                _rotate(tree, sibling, 1 - side)
                sibling = tree[parent, 1 - side]
            tree[sibling, RED] = tree[parent, RED]
            tree[parent, RED] = 0
            tree[tree[sibling, 1 - side], RED] = 0
            _rotate(tree, parent, side)
            at = tree[ROOT, VALUE]
            break
    if at:
        tree[at, RED] = 0
    return node


@compiled
def sum_since(tree: Ints, order: int) -> int:
    """The sum of the elements numbered `order` and later."""
    total = 0
    at = int(tree[ROOT, VALUE])
    while at:
        if tree[at, ORDER] >= order:
            total += tree[at, VALUE] + tree[tree[at, RIGHT], TOTAL]
            at = tree[at, LEFT]
        else:
            at = tree[at, RIGHT]
    return total
