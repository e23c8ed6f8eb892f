"""Combining pane partials: the combine of each operator on whole rows of groups, and sliding lookups over panes.

The operator is a number, tested once per row of groups, so that one compiled kernel serves every component; float
words are stored as the bits of a float64 in the same int64 arrays.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

ADD, MIN, MAX, ADD_FLOATS, MOMENTS = range(5)


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
def copy_rows(into: Ints, other: Ints, groups: int) -> None:
    """into = other for the first `groups` columns."""
    for w in range(into.shape[0]):
        a = into[w]
        b = other[w]
        for g in range(groups):
            a[g] = b[g]


@kernel
def slide_panes(
    op: int,
    panes: Ints,
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
    long they are; a window that goes back starts anew, which is a plain scan.

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
        fresh = i == 0 or start < lo or stop < hi or start >= hi
        if fresh:
            bottom = start
            mid = start
            hi = start
        elif start > lo and start >= mid:
            # The front is used up: what the back holds, and what enters now, becomes the new front.
            bottom = start
            for p in range(stop - 1, start - 1, -1):
                row = front[p - bottom]
                copy_rows(row, panes[p], groups)
                if p + 1 < stop:
                    combine_rows(op, row, front[p + 1 - bottom], groups)
            mid = stop
            hi = stop
            fresh = True
        if fresh:
            for w in range(words):
                back[w, :] = identity[w]
        for p in range(hi, stop):
            combine_rows(op, back, panes[p], groups)
        lo = start
        hi = stop
        copy_rows(answer, back, groups)
        if lo < mid:
            combine_rows(op, answer, front[lo - bottom], groups)
        at = offsets[i]
        rows = offsets[i + 1] - at
        for w in range(words):
            source = answer[w]
            target = out[w]
            if rows == groups:
                for g in range(groups):
                    target[at + g] = source[g]
            else:
                for k in range(at, at + rows):
                    target[k] = source[present[k]]
