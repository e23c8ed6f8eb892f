"""Combining pane partials: the combine of each operator on whole rows of groups, and lookups that combine rows.

The operator is a number, tested once per row of groups, so that one compiled kernel serves every component; float
words are stored as the bits of a float64 in the same int64 arrays.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

ADD, MIN, MAX, ADD_FLOATS, MOMENTS, AFFINE = range(6)
POINT = 8
"""Combining one number of a row costs as much as so many when the whole row is combined, which is done in vectors."""
ON, ANEW, OVER = range(3)
"""How a sliding aggregation comes to its next window."""


@kernel
def combine_rows(op: int, into: Ints, other: Ints, groups: int) -> None:
    """into = combine(into, other) for the first `groups` columns of contiguous arrays [words, groups]."""
    if op == ADD:
        for w in range(into.shape[0]):
            a = into[w]
            b = other[w]
            for g in range(groups):
                a[g] += b[g]
    elif op == MIN:
        a = into[0]
        b = other[0]
        for g in range(groups):
            a[g] = min(a[g], b[g])
    elif op == MAX:
        a = into[0]
        b = other[0]
        for g in range(groups):
            a[g] = max(a[g], b[g])
    elif op == ADD_FLOATS:
        sums = into[0].view(np.float64)
        errors = into[1].view(np.float64)
        other_sums = other[0].view(np.float64)
        other_errors = other[1].view(np.float64)
        for g in range(groups):
            x = sums[g]
            y = other_sums[g]
            total = x + y
            part = total - x
            errors[g] += other_errors[g] + ((x - (total - part)) + (y - part))
            sums[g] = total
    elif op == AFFINE:  # x -> a·x + b, the left one first: the order matters
        slopes = into[0]
        shifts = into[1]
        for g in range(groups):
            slopes[g] *= other[0, g]
            shifts[g] = shifts[g] * other[0, g] + other[1, g]
    else:  # MOMENTS: Chan, Golub, LeVeque
        counts = into[0].view(np.float64)
        means = into[1].view(np.float64)
        squares = into[2].view(np.float64)
        other_counts = other[0].view(np.float64)
        other_means = other[1].view(np.float64)
        other_squares = other[2].view(np.float64)
        for g in range(groups):
            m = other_counts[g]
            if m > 0.0:
                n = counts[g]
                if n == 0.0:
                    counts[g] = m
                    means[g] = other_means[g]
                    squares[g] = other_squares[g]
                else:
                    both = n + m
                    delta = other_means[g] - means[g]
                    means[g] += delta * (m / both)
                    squares[g] += other_squares[g] + delta * delta * (n * (m / both))
                    counts[g] = both


@kernel
def plain_combine(op: int, a: int, b: int) -> int:
    """One word of ADD, MIN or MAX."""
    if op == MAX:
        return max(a, b)
    if op == MIN:
        return min(a, b)
    return a + b


@kernel
def copy_rows(into: Ints, other: Ints, groups: int) -> None:
    """into = other for the first `groups` columns."""
    for w in range(into.shape[0]):
        a = into[w]
        b = other[w]
        for g in range(groups):
            a[g] = b[g]


@kernel
def emit_row(row: Ints, groups: int, at: int, rows: int, present: Codes, out: Ints) -> None:
    """out[:, at:at+rows] = the columns of the groups present there, or all columns when they are that many."""
    for w in range(row.shape[0]):
        source = row[w]
        target = out[w]
        if rows == groups:
            for g in range(groups):
                target[at + g] = source[g]
        else:
            for k in range(at, at + rows):
                target[k] = source[present[k]]


@kernel
def build_rows(op: int, store: Ints, targets: Ints, lefts: Ints, rights: Ints, groups: int) -> None:
    """store[targets[k]] = combine(store[lefts[k]], store[rights[k]]), one after the other; a right of -1 is nothing."""
    plain = op in (MIN, MAX) or (op == ADD and store.shape[1] == 1)
    if plain and groups == 1:
        for k in range(targets.size):
            value = store[lefts[k], 0, 0]
            if rights[k] >= 0:
                value = plain_combine(op, value, store[rights[k], 0, 0])
            store[targets[k], 0, 0] = value
        return
    if plain:
        # One pass instead of a copy and a combine.
        for k in range(targets.size):
            target = store[targets[k], 0]
            left = store[lefts[k], 0]
            right = store[rights[k] if rights[k] >= 0 else lefts[k], 0]
            if rights[k] < 0:
                for g in range(groups):
                    target[g] = left[g]
            else:
                for g in range(groups):
                    target[g] = plain_combine(op, left[g], right[g])
        return
    for k in range(targets.size):
        copy_rows(store[targets[k]], store[lefts[k]], groups)
        if rights[k] >= 0:
            combine_rows(op, store[targets[k]], store[rights[k]], groups)


@kernel
def combine_single(op: int, store: Ints, bounds: Ints, cover: Ints, identity: Ints, offsets: Ints, out: Ints) -> None:
    """`combine_covers` for one group, whose answer stays in a register."""
    floats = store.view(np.float64)
    answers = out.view(np.float64)
    for i in range(offsets.size - 1):
        at = offsets[i]
        if offsets[i + 1] == at:
            continue
        begin = bounds[i]
        end = bounds[i + 1]
        if op == ADD_FLOATS:
            x = 0.0
            error = 0.0
            for k in range(begin, end):
                y = floats[cover[k], 0, 0]
                total = x + y
                part = total - x
                error += floats[cover[k], 1, 0] + ((x - (total - part)) + (y - part))
                x = total
            answers[0, at] = x
            answers[1, at] = error
            continue
        value = identity[0]
        for k in range(begin, end):
            value = plain_combine(op, value, store[cover[k], 0, 0])
        out[0, at] = value


@kernel
def combine_covers(
    op: int,
    store: Ints,
    bounds: Ints,
    cover: Ints,
    groups: int,
    identity: Ints,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """Window i combines the rows cover[bounds[i]:bounds[i+1]] of the store, from left to right.

    When few groups are wanted of a plain component, only these are combined.
    """
    plain = op in (MIN, MAX) or (op == ADD and store.shape[1] == 1)
    if groups == 1 and (plain or op == ADD_FLOATS):
        combine_single(op, store, bounds, cover, identity, offsets, out)
        return
    words = store.shape[1]
    answer = np.empty((words, groups), np.int64)
    for i in range(offsets.size - 1):
        at = offsets[i]
        rows = offsets[i + 1] - at
        begin = bounds[i]
        end = bounds[i + 1]
        if rows == 0:
            continue
        if end - begin == 1:
            emit_row(store[cover[begin]], groups, at, rows, present, out)
            continue
        if plain and POINT * rows < groups:
            for k in range(at, at + rows):
                value = identity[0]
                for c in range(begin, end):
                    value = plain_combine(op, value, store[cover[c], 0, present[k]])
                out[0, k] = value
            continue
        if end == begin:
            for w in range(words):
                answer[w, :] = identity[w]
        else:
            copy_rows(answer, store[cover[begin]], groups)
        if plain:
            whole = answer[0]
            for k in range(begin + 1, end):
                other = store[cover[k], 0]
                for g in range(groups):
                    whole[g] = plain_combine(op, whole[g], other[g])
        else:
            for k in range(begin + 1, end):
                combine_rows(op, answer, store[cover[k]], groups)
        emit_row(answer, groups, at, rows, present, out)


@kernel
def scan_back(
    op: int,
    panes: Ints,
    step: int,
    order: Ints,
    first: Ints,
    last: Ints,
    groups: int,
    identity: Ints,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """Windows that end together are answered along the way of one scan, from the youngest pane to the oldest.

    `order` has the windows by their end, and of one end the shortest first. Pane p is the row p·step.
    """
    words = panes.shape[1]
    answer = np.empty((words, groups), np.int64)
    longer = np.empty((words, groups), np.int64)
    p = 0
    end = -1
    for i in order:
        if last[i] != end:
            end = last[i]
            p = end
            for w in range(words):
                answer[w, :] = identity[w]
        while p > first[i]:
            p -= 1
            # The older pane is on the left, so it takes what was combined so far.
            copy_rows(longer, panes[p * step], groups)
            combine_rows(op, longer, answer, groups)
            answer, longer = longer, answer
        emit_row(answer, groups, offsets[i], offsets[i + 1] - offsets[i], present, out)


@kernel
def turn_of(i: int, start: int, stop: int, lo: int, mid: int, hi: int) -> int:
    """How a sliding aggregation of panes lo..hi-1, of which those before mid are its front, goes on to window i.

    ANEW: a window that goes back. OVER: the front is used up, and what the back holds, and what enters now, becomes the
    new front.
    """
    if i == 0 or start < lo or stop < hi or start >= hi:
        return ANEW
    return OVER if start > lo and start >= mid else ON


@kernel
def slide_panes(
    op: int,
    panes: Ints,
    step: int,
    first: Ints,
    last: Ints,
    groups: int,
    identity: Ints,
    offsets: Ints,
    present: Codes,
    out: Ints,
) -> None:
    """Two-stacks aggregation: window i combines panes first[i]..last[i]-1; its answer goes to out[:, offsets[i]:].

    Windows that advance together cost at most three row combines per pane that enters and one per window, however
    long they are; a window that goes back starts anew, which is a plain scan. Pane p is the row p·step.

        panes   lo ............ mid ............ hi
                └ front: S[p] = p..mid-1 ┘└ back: mid..hi-1 ┘
    """
    words = panes.shape[1]
    longest = 0
    for i in range(first.size):
        longest = max(longest, last[i] - first[i])
    # A lone window is a scan: no stack needed.
    front = np.empty((longest if first.size > 1 else 0, words, groups), np.int64)
    back = np.empty((words, groups), np.int64)
    answer = np.empty((words, groups), np.int64)
    lo = 0
    mid = 0
    hi = 0
    bottom = 0
    for i in range(first.size):
        start = first[i]
        stop = max(last[i], start)
        turn = turn_of(i, start, stop, lo, mid, hi)
        if turn == ANEW:
            bottom = start
            mid = start
            hi = start
        elif turn == OVER:
            bottom = start
            for p in range(stop - 1, start - 1, -1):
                row = front[p - bottom]
                copy_rows(row, panes[p * step], groups)
                if p + 1 < stop:
                    combine_rows(op, row, front[p + 1 - bottom], groups)
            mid = stop
            hi = stop
        if turn != ON:
            for w in range(words):
                back[w, :] = identity[w]
        for p in range(hi, stop):
            combine_rows(op, back, panes[p * step], groups)
        lo = start
        hi = stop
        at = offsets[i]
        rows = offsets[i + 1] - at
        if lo < mid:
            copy_rows(answer, front[lo - bottom], groups)
            combine_rows(op, answer, back, groups)
            emit_row(answer, groups, at, rows, present, out)
        else:
            emit_row(back, groups, at, rows, present, out)


@kernel
def slide_single(
    op: int, panes: Ints, step: int, first: Ints, last: Ints, g: int, identity: Ints, offsets: Ints, out: Ints
) -> None:
    """`slide_panes` for the one group g and one word of ADD, MIN or MAX; its answer goes to out[0, offsets[i] + g]."""
    longest = 0
    for i in range(first.size):
        longest = max(longest, last[i] - first[i])
    front = np.empty(longest + 1, np.int64)
    nothing = identity[0]
    back = nothing
    lo = 0
    mid = 0
    hi = 0
    bottom = 0
    for i in range(first.size):
        start = first[i]
        stop = max(last[i], start)
        turn = turn_of(i, start, stop, lo, mid, hi)
        if turn == ANEW:
            bottom = start
            mid = start
            hi = start
            back = nothing
        elif turn == OVER:
            bottom = start
            value = nothing
            for p in range(stop - 1, start - 1, -1):
                value = plain_combine(op, panes[p * step, 0, g], value)
                front[p - bottom] = value
            mid = stop
            hi = stop
            back = nothing
        for p in range(hi, stop):
            back = plain_combine(op, back, panes[p * step, 0, g])
        lo = start
        hi = stop
        out[0, offsets[i] + g] = plain_combine(op, front[lo - bottom], back) if lo < mid else back


@kernel
def weigh_slide(first: Ints, last: Ints) -> int:
    """The row combines of `slide_panes`: the same decisions, without the data."""
    lo = 0
    mid = 0
    hi = 0
    total = 0
    for i in range(first.size):
        start = first[i]
        stop = max(last[i], start)
        turn = turn_of(i, start, stop, lo, mid, hi)
        if turn == ANEW:
            mid = start
            hi = start
        elif turn == OVER:
            total += stop - start
            mid = stop
            hi = stop
        total += stop - hi + (start < mid)
        lo = start
        hi = stop
    return total
