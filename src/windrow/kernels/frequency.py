"""Windows that slide over counted values: what enters and what leaves is looked at, never the whole window.

Entries are in order of pane; a place is a different (group, value), and places are in that order. `moves[w]` says how
to come to window w from the one before: entries [a, b) that leave (two pieces) and enter (two pieces). `order` is the
order in which the windows are visited, `offsets` and `present` are those of `Windows`. `count` of each place starts
and ends at 0 inside each kernel.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Floats, Ints, kernel

LEAVING, PIECES = 2, 4
"""The first two pieces leave, the other two enter."""


@kernel
def plan_moves(order: Ints, low: Ints, high: Ints, moves: Ints) -> int:
    """Write the pieces [windows, 4, 2] for windows of the entries [low, high); returns how many entries move."""
    first, last = 0, 0
    cost = 0
    for w in order:
        a, b = low[w], high[w]
        if a >= last or b <= first or abs(a - first) + abs(b - last) >= last - first + b - a:
            moves[w] = 0
            moves[w, 0, 0], moves[w, 0, 1] = first, last
            moves[w, 2, 0], moves[w, 2, 1] = a, b
        else:
            moves[w, 0, 0], moves[w, 0, 1] = first, max(a, first)
            moves[w, 1, 0], moves[w, 1, 1] = min(b, last), last
            moves[w, 2, 0], moves[w, 2, 1] = a, max(a, first)
            moves[w, 3, 0], moves[w, 3, 1] = min(b, last), b
        for piece in range(PIECES):
            cost += moves[w, piece, 1] - moves[w, piece, 0]
        first, last = a, b
    return cost


@kernel
def totals(order: Ints, moves: Ints, offsets: Ints, present: Codes, groups: Ints, counts: Ints, total: Ints) -> Ints:
    """How many values each answer row has; `total` is a zero per group. O(1) per move and row."""
    out = np.empty(present.size, np.int64)
    for w in order:
        for piece in range(PIECES):
            sign = -1 if piece < LEAVING else 1
            for e in range(moves[w, piece, 0], moves[w, piece, 1]):
                total[groups[e]] += sign * counts[e]
        for row in range(offsets[w], offsets[w + 1]):
            out[row] = total[present[row]]
    return out


@kernel
def distinct(
    order: Ints,
    moves: Ints,
    offsets: Ints,
    present: Codes,
    places: Codes,
    counts: Ints,
    place_groups: Ints,
    place_codes: Ints,
    state: Ints,
) -> Ints:
    """Per answer row how many different values, and the sums of the low and of the high halves of their codes.

    `state` [groups, 3] is zeros. O(1) per move and row.
    """
    out = np.empty((3, present.size), np.int64)
    count = np.zeros(place_codes.size, np.int64)
    for w in order:
        for piece in range(PIECES):
            sign = -1 if piece < LEAVING else 1
            for e in range(moves[w, piece, 0], moves[w, piece, 1]):
                p = places[e]
                before = count[p]
                count[p] = before + sign * counts[e]
                if before == 0 or count[p] == 0:
                    group = place_groups[p]
                    state[group, 0] += sign
                    state[group, 1] += sign * (place_codes[p] & 0xFFFFFFFF)
                    state[group, 2] += sign * (place_codes[p] >> 32)
        for row in range(offsets[w], offsets[w + 1]):
            for k in range(3):
                out[k, row] = state[present[row], k]
    return out


@kernel
def select(
    order: Ints,
    moves: Ints,
    offsets: Ints,
    present: Codes,
    places: Codes,
    counts: Ints,
    starts: Ints,
    place_codes: Ints,
    positions: Ints,
) -> Ints:
    """The codes at positions [k, rows] of each row's sorted values, counted from 1; 0 where there is no position.

    A Fenwick tree over the places: O(log places) per move and answer. `starts[g]` is the first place of group g.
    """
    out = np.zeros(positions.shape, np.int64)
    size = 1
    while size < place_codes.size:
        size *= 2
    tree = np.zeros(size + 1, np.int64)
    for w in order:
        for piece in range(PIECES):
            sign = -1 if piece < LEAVING else 1
            for e in range(moves[w, piece, 0], moves[w, piece, 1]):
                at = places[e] + 1
                change = sign * counts[e]
                while at <= size:
                    tree[at] += change
                    at += at & -at
        for row in range(offsets[w], offsets[w + 1]):
            before = 0
            at = starts[present[row]]
            while at > 0:
                before += tree[at]
                at &= at - 1
            for k in range(positions.shape[0]):
                left = before + positions[k, row]
                if positions[k, row] < 1:
                    continue
                at, half = 0, size // 2
                while half > 0:
                    if tree[at + half] < left:
                        at += half
                        left -= tree[at]
                    half //= 2
                out[k, row] = place_codes[at]
    return out


@kernel
def ranked(
    order: Ints,
    moves: Ints,
    offsets: Ints,
    present: Codes,
    places: Codes,
    counts: Ints,
    starts: Ints,
    place_groups: Ints,
    bounds: Ints,
) -> tuple[Ints, Ints]:
    """The places and counts of the most frequent values: row r has as many as bounds[r] .. bounds[r+1] has room.

    O(1) per move, O(present values · log k) per row; of equally frequent values the smaller comes first.
    """
    best = np.empty(bounds[-1], np.int64)
    best_counts = np.empty(bounds[-1], np.int64)
    count, listed, position, ends = _blank_lists(starts, place_groups)
    for w in order:
        _move_lists(moves[w], places, counts, count, listed, position, ends, place_groups)
        for row in range(offsets[w], offsets[w + 1]):
            start = bounds[row]
            wanted = bounds[row + 1] - start
            group = present[row]
            heap = best[start : start + wanted]
            filled = 0
            for i in range(starts[group], ends[group]):
                p = listed[i]
                if filled < wanted:
                    filled = _push(heap, filled, p, count)
                elif wanted > 0 and _before(p, heap[0], count):
                    _sift_down(heap, filled, p, count)
            for left in range(filled - 1, 0, -1):
                worst = heap[0]
                _sift_down(heap, left, heap[left], count)
                heap[left] = worst
            for i in range(filled):
                best_counts[start + i] = count[heap[i]]
    return best, best_counts


@kernel
def sum_floats(
    order: Ints,
    moves: Ints,
    offsets: Ints,
    present: Codes,
    places: Codes,
    counts: Ints,
    starts: Ints,
    place_groups: Ints,
    values: Floats,
) -> Floats:
    """The sum of each row's different floats: O(1) per move, O(present values) per row.

    Each sum is made anew, with compensation: a NaN, an infinity or a great number leaves nothing behind.
    """
    out = np.zeros(present.size)
    count, listed, position, ends = _blank_lists(starts, place_groups)
    for w in order:
        _move_lists(moves[w], places, counts, count, listed, position, ends, place_groups)
        for row in range(offsets[w], offsets[w + 1]):
            total, error = 0.0, 0.0
            for i in range(starts[present[row]], ends[present[row]]):
                value = values[listed[i]]
                grown = total + value
                error += (total - grown) + value if abs(total) >= abs(value) else (value - grown) + total
                total = grown
            out[row] = total + error if np.isfinite(total) else total
    return out


@kernel
def _blank_lists(starts: Ints, place_groups: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Per place its count, and where it is listed; the list of the places of each group, and where it ends."""
    count = np.zeros(place_groups.size, np.int64)
    return count, np.empty_like(count), np.empty_like(count), starts.copy()


@kernel
def _move_lists(
    pieces: Ints,
    places: Codes,
    counts: Ints,
    count: Ints,
    listed: Ints,
    position: Ints,
    ends: Ints,
    place_groups: Ints,
) -> None:
    """Take the entries of a window in and out of the lists of its groups."""
    for piece in range(PIECES):
        sign = -1 if piece < LEAVING else 1
        for e in range(pieces[piece, 0], pieces[piece, 1]):
            _list_present(places[e], sign * counts[e], count, listed, position, ends, place_groups)


@kernel
def _list_present(
    p: int, change: int, count: Ints, listed: Ints, position: Ints, ends: Ints, place_groups: Ints
) -> None:
    """Change a count, and keep the list of the places of its group that have one: O(1), in no order."""
    before = count[p]
    count[p] = before + change
    group = place_groups[p]
    if before == 0:
        listed[ends[group]] = p
        position[p] = ends[group]
        ends[group] += 1
    elif count[p] == 0:
        ends[group] -= 1
        moved = listed[ends[group]]
        listed[position[p]] = moved
        position[moved] = position[p]


@kernel
def _before(p: int, q: int, count: Ints) -> bool:
    """Whether place p ranks before q: more frequent, or as frequent and smaller."""
    if count[p] != count[q]:
        return bool(count[p] > count[q])
    return p < q


@kernel
def _push(heap: Ints, filled: int, p: int, count: Ints) -> int:
    """One more place in a heap with the worst on top."""
    at = filled
    while at > 0 and _before(heap[(at - 1) // 2], p, count):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = p
    return filled + 1


@kernel
def _sift_down(heap: Ints, filled: int, p: int, count: Ints) -> None:
    """Place p instead of the worst of the first `filled`."""
    at, child = 0, 1
    while child < filled:
        if child + 1 < filled and _before(heap[child], heap[child + 1], count):
            child += 1
        if not _before(p, heap[child], count):
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = p
