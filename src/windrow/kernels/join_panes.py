"""Many due times over the results of a join in one call: results come in order, at each due time windows are answered.

Panes are numbered in the order of their time, and a window is all panes from one number (its border) on. Of due time k:
results before places[k] are there; borders[k] are those of all different windows, ascending; windows bounds[k] …
bounds[k+1]-1 are answered, `asked` has their places in borders[k], youngest first. Words are combined by `ops`; the
first word is the number of results.

Every kernel begins at due time `k`, and stops where the rows of the next one might not fit into `out`. It
gives (due times done, results taken in, rows written). `told` counts the cells read by lookups, and those updated.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.combine import MAX, MIN
from windrow.kernels.jit import Ints, inlined, kernel


@kernel
def combined(op: int, a: int, b: int) -> int:
    """One word."""
    if op == MAX:
        return max(a, b)
    if op == MIN:
        return min(a, b)
    return a + b


@kernel
def combine_into(ops: Ints, into: Ints, other: Ints, groups: int) -> None:
    """into = combine(into, other), both [words, groups]."""
    for w in range(ops.size):
        a = into[w]
        b = other[w]
        if ops[w] == MAX:
            for g in range(groups):
                a[g] = max(a[g], b[g])
        elif ops[w] == MIN:
            for g in range(groups):
                a[g] = min(a[g], b[g])
        else:
            for g in range(groups):
                a[g] += b[g]


@kernel
def emit(answer: Ints, groups: int, always: bool, at: int, present: Ints, out: Ints) -> int:
    """The groups that have results, from row `at` on; gives the row behind."""
    counts = answer[0]
    begin = at
    for g in range(groups):
        present[at] = g
        at += counts[g] > 0 or always
    for w in range(answer.shape[0]):
        source = answer[w]
        target = out[w]
        for row in range(begin, at):
            target[row] = source[present[row]]
    return at


@kernel
def scan_intervals(
    ops: Ints,
    identity: Ints,
    ends: Ints,
    cell_gids: Ints,
    cells: Ints,
    result_cells: Ints,
    words: Ints,
    places: Ints,
    borders: Ints,
    bounds: Ints,
    asked: Ints,
    k: int,
    done: int,
    first: int,
    groups: int,
    always: bool,
    offsets: Ints,
    present: Ints,
    out: Ints,
    told: Ints,
) -> tuple[int, int, int]:
    """BIJ: `cells` [cells, words] are in order of their panes, those of pane first + p begin at ends[p]."""
    count = ops.size
    answer = np.empty((groups, count), np.int64)
    for g in range(groups):
        answer[g] = identity
    seen = np.empty(groups, np.int64)
    rows = 0
    while k < places.size and rows + (bounds[k + 1] - bounds[k]) * groups <= out.shape[1]:
        for i in range(done, places[k]):
            into = cells[result_cells[i]]
            for w in range(count):
                into[w] = combined(ops[w], into[w], words[i, w])
        told[1] += places[k] - done
        done = places[k]
        many = 0
        c = cell_gids.size
        for one in range(bounds[k], bounds[k + 1]):
            pane = borders[k, asked[one]] - first
            end = ends[min(max(pane, 0), ends.size - 1)]
            told[0] += c - end
            while c > end:
                c -= 1
                if cells[c, 0] > 0:
                    g = cell_gids[c]
                    if answer[g, 0] == 0:
                        seen[many] = g
                        many += 1
                    for w in range(count):
                        answer[g, w] = combined(ops[w], answer[g, w], cells[c, w])
            if always:
                for w in range(count):
                    out[w, rows] = answer[0, w]
                present[rows] = 0
                rows += 1
            else:
                for n in range(many):
                    present[rows + n] = seen[n]
                    for w in range(count):
                        out[w, rows + n] = answer[seen[n], w]
                rows += many
            offsets[one + 1] = rows
        for n in range(many):
            answer[seen[n]] = identity
        k += 1
    return k, done, rows


@kernel
def move_head(head: int, upto: int, identity: Ints, slots: int, store: Ints) -> None:
    """Panes behind `head` begin: their places in the ring, which old panes have left, are blank."""
    for pane in range(max(head + 1, upto - slots + 1), upto + 1):
        for w in range(identity.size):
            store[pane % slots, w, :] = identity[w]


@inlined
def begin_zones(zone: Ints, held: Ints, head: int, upto: int, slots: int) -> None:
    """Panes behind `head` begin: the sums that each of them is in."""
    for pane in range(max(head + 1, upto - slots + 1), upto + 1):
        z = held.size - 1
        while z > 0 and held[z] > pane:
            z -= 1
        zone[pane % slots] = z


@inlined
def pass_on(zone: Ints, sums: Ints, held: Ints, ring: Ints, borders: Ints, head: int, slots: int, groups: int) -> int:
    """Panes that a window loses go over to the next longer one, or away; gives the number of sums that changed."""
    updated = 0
    for z in range(held.size - 1, -1, -1):
        for pane in range(max(held[z], head - slots + 1), min(borders[z], head + 1)):
            place = pane % slots
            for w in range(sums.shape[1]):
                moved = ring[place, w]
                source = sums[z, w]
                for g in range(groups):
                    source[g] -= moved[g]
                if z > 0:
                    target = sums[z - 1, w]
                    for g in range(groups):
                        target[g] += moved[g]
            zone[place] = z - 1
            updated += 2
        held[z] = max(held[z], borders[z])
    return updated


@inlined
def add_into(into: Ints, other: Ints, groups: int) -> None:
    """into += other, both [words, groups]."""
    for w in range(into.shape[0]):
        a = into[w]
        b = other[w]
        for g in range(groups):
            a[g] += b[g]


@kernel
def run_ring(
    ops: Ints,
    identity: Ints,
    begins: Ints,
    sizes: Ints,
    tree: Ints,
    running: tuple[Ints, Ints, Ints] | None,
    state: Ints,
    panes: Ints,
    gids: Ints,
    words: Ints,
    places: Ints,
    borders: Ints,
    bounds: Ints,
    asked: Ints,
    k: int,
    done: int,
    groups: int,
    always: bool,
    offsets: Ints,
    present: Ints,
    out: Ints,
    told: Ints,
) -> tuple[int, int, int]:
    """IJ: intervals of 2^l panes, aligned, in a ring of sizes[l] from begins[l] on; RJ: of one pane only, and sums.

    `running` (None in IJ, which is compiled without what is about it) has per place in the ring the zone of the pane
    there, per zone the sums, and the first pane: sums[z] are the results in panes held[z] … held[z+1]-1, so that those
    from z on together are a window. `state`: the youngest pane and the oldest one, which are kept up to date here.
    """
    if running is not None:
        zone, sums, held = running
    head = state[0]
    low = state[1]
    count = ops.size
    levels = sizes.size
    answer = np.empty((count, tree.shape[2]), np.int64)
    rows = 0
    while k < places.size and rows + (bounds[k + 1] - bounds[k]) * groups <= out.shape[1]:
        for i in range(done, places[k]):
            pane = panes[i]
            if pane < low:
                continue
            if pane > head:
                for level in range(levels):
                    part = tree[begins[level] : begins[level] + sizes[level]]
                    move_head(head >> level, pane >> level, identity, sizes[level], part)
                if running is not None:
                    begin_zones(zone, held, head, pane, sizes[0])
                head = pane
            if running is None:
                for level in range(levels):
                    node = begins[level] + (pane >> level) % sizes[level]
                    for w in range(count):
                        tree[node, w, gids[i]] = combined(ops[w], tree[node, w, gids[i]], words[i, w])
            else:
                g = gids[i]
                place = pane % sizes[0]
                z = zone[place]
                for w in range(count):
                    tree[place, w, g] += words[i, w]
                    sums[z, w, g] += words[i, w]
        told[1] += (levels if running is None else 2) * (places[k] - done)
        done = places[k]
        low = max(low, borders[k, 0])
        if running is not None:
            told[1] += pass_on(zone, sums, held, tree, borders[k], head, sizes[0], groups)
        below = borders.shape[1]
        for one in range(bounds[k], bounds[k + 1]):
            if running is None or one == bounds[k]:
                for w in range(count):
                    answer[w, :] = identity[w]
            if running is None:
                start = borders[k, asked[one]]
                stop = head + 1
                level = 0
                while start < stop:
                    last = level + 1 == levels
                    if start & 1 or last:
                        combine_into(ops, answer, tree[begins[level] + start % sizes[level]], groups)
                        told[0] += 1
                        start += 1
                    if stop & 1 and start < stop and not last:
                        stop -= 1
                        combine_into(ops, answer, tree[begins[level] + stop % sizes[level]], groups)
                        told[0] += 1
                    if not last:
                        start >>= 1
                        stop >>= 1
                        level += 1
            else:
                while below > asked[one]:
                    below -= 1
                    told[0] += 1
                    add_into(answer, sums[below], groups)
            rows = emit(answer, groups, always, rows, present, out)
            offsets[one + 1] = rows
        k += 1
    state[0] = head
    state[1] = low
    return k, done, rows
