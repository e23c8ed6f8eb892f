"""Base intervals by bit operations (002, sections 3.1.1 and 5): which nodes a pane completes, which cover a window.

A node of size z = 2^level covers the panes s..s+z-1, where z divides s. It is kept in row 2·s + z - 1: in order, a
node between its two halves. So a pane brings two rows, its own and a free one before the next pane, and whatever
covers only live panes is in live rows. No pointers, no array per level, and the rows expire with the panes.

    row    0  1  2  3  4  5  6  7  8
    pane   0     1     2     3     4
    size 2    ·           ·
    size 4          ·
"""

from __future__ import annotations

from windrow.kernels.combine import MAX, MIN
from windrow.kernels.jit import Ints, kernel


@kernel
def plan_nodes(oldest: int, begin: int, end: int, base: int, targets: Ints, lefts: Ints, rights: Ints) -> int:
    """The nodes that panes begin..end-1 complete, children first; gives how many. Pane p is in row 2·(p - base).

    A node with a pane before `oldest` is left out: no window will ask for it.
    """
    count = 0
    for pane in range(begin, end):
        half = 1
        start = pane - 1
        while (pane + 1) & (2 * half - 1) == 0 and start >= oldest:
            at = 2 * (start - base)
            targets[count] = at + 2 * half - 1
            lefts[count] = at + half - 1
            rights[count] = at + 3 * half - 1
            count += 1
            half *= 2
            start = pane + 1 - 2 * half
    return count


@kernel
def ones(bits: int) -> int:
    """How many bits are set."""
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56) & 0xFF


@kernel
def top_bit(bits: int) -> int:
    """The highest bit that is set."""
    bits |= bits >> 1
    bits |= bits >> 2
    bits |= bits >> 4
    bits |= bits >> 8
    bits |= bits >> 16
    bits |= bits >> 32
    return bits - (bits >> 1)


@kernel
def cover_dyadic(first: Ints, last: Ints, shift: int, base: int, bounds: Ints, cover: Ints) -> None:
    """The nodes of the panes first[i]..last[i]-1, from left to right, into cover[bounds[i]:bounds[i+1]].

    Both ends agree above some bit. Up to the multiple of it that is in the window, each node is as large as the lowest
    bit of where it starts; behind it, as the bits of the end. So there are at most 2·log2 of them, and no test per bit.
    The panes are counted from `shift`.
    """
    count = 0
    bounds[0] = 0
    for i in range(first.size):
        at = first[i] + shift
        end = last[i] + shift
        if at < end:
            bit = top_bit(at ^ end)
            middle = end & -bit
            while at < middle:
                size = (at | bit) & -(at | bit)
                cover[count] = 2 * (at - base) + size - 1
                count += 1
                at += size
            count += ones(end - middle)
            k = count
            while end > middle:
                size = end & -end
                end -= size
                k -= 1
                cover[k] = 2 * (end - base) + size - 1
        bounds[i + 1] = count


@kernel
def weigh_dyadic(first: Ints, last: Ints, shift: int) -> int:
    """How many nodes `cover_dyadic` would list."""
    total = 0
    for i in range(first.size):
        at = first[i] + shift
        end = last[i] + shift
        if at < end:
            bit = top_bit(at ^ end)
            total += ones(bit - (at & (bit - 1))) + ones(end & (bit - 1))
    return total


@kernel
def answer_single(
    op: int, store: Ints, first: Ints, last: Ints, shift: int, base: int, identity: Ints, offsets: Ints, out: Ints
) -> None:
    """Cover and combine at once, for one group and one word of ADD, MIN or MAX: no list of nodes, one register."""
    flat = store.reshape(-1)
    stride = store.shape[2]
    for i in range(first.size):
        at = first[i] + shift
        end = last[i] + shift
        value = identity[0]
        if at < end:
            bit = top_bit(at ^ end)
            middle = end & -bit
            while at < middle:
                size = (at | bit) & -(at | bit)
                other = flat[(2 * (at - base) + size - 1) * stride]
                at += size
                if op == MAX:
                    value = max(value, other)
                elif op == MIN:
                    value = min(value, other)
                else:
                    value += other
            while end > middle:
                size = end & -end
                end -= size
                other = flat[(2 * (end - base) + size - 1) * stride]
                if op == MAX:
                    value = max(value, other)
                elif op == MIN:
                    value = min(value, other)
                else:
                    value += other
        if offsets[i + 1] > offsets[i]:
            out[0, offsets[i]] = value
