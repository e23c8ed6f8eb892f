"""Landmark intervals (002, section 3.1.2): what a pane adds to them, and which of them cover a window.

For a landmark at every multiple of W the pane p keeps the interval from the landmark at or before p up to p (its
prefix) and, once the next landmark is reached, the interval from p up to that (its suffix). Every W is a power of two,
so that landmarks are found by bit operations. Pane p has the rows

    width·(p - base)          the pane itself
    width·(p - base) + 1 + 2j the prefix for the j-th W
    width·(p - base) + 2 + 2j the suffix for the j-th W
"""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel


@kernel
def plan_landmarks(
    oldest: int, begin: int, end: int, base: int, steps: Ints, targets: Ints, lefts: Ints, rights: Ints
) -> int:
    """What panes begin..end-1 add, for every W of `steps`; gives how many rows. A right of -1 is a copy."""
    width = 1 + 2 * steps.size
    count = 0
    for pane in range(begin, end):
        for j in range(steps.size):
            step = steps[j]
            row = width * (pane - base)
            targets[count] = row + 1 + 2 * j
            if pane & (step - 1) == 0 or pane == oldest:
                lefts[count] = row
                rights[count] = -1
            else:
                lefts[count] = row - width + 1 + 2 * j
                rights[count] = row
            count += 1
            if (pane + 1) & (step - 1) == 0:
                for p in range(pane, max(pane - step, oldest - 1), -1):
                    row = width * (p - base)
                    targets[count] = row + 2 + 2 * j
                    lefts[count] = row
                    rights[count] = -1 if p == pane else row + width + 2 + 2 * j
                    count += 1
    return count


@kernel
def cover_landmarks(first: Ints, last: Ints, shift: int, base: int, steps: Ints, bounds: Ints, cover: Ints) -> int:
    """The rows that cover the panes first[i]..last[i]-1 from left to right; gives how many windows were done.

    With the longest W whose landmark is in the window: the suffix of the first pane, whole blocks, the prefix of the
    last pane. Without a landmark in the window, its panes one by one. It stops when the next may not find room. The
    panes are counted from `shift`.
    """
    width = 1 + 2 * steps.size
    count = 0
    bounds[0] = 0
    for i in range(first.size):
        start = first[i] + shift
        end = last[i] + shift
        j = steps.size - 1
        while j >= 0 and (start | (steps[j] - 1)) >= end:
            j -= 1
        step = steps[j] if j >= 0 else 1
        if count + (end - start) // step + 2 > cover.size:
            return i
        if j < 0:
            for pane in range(start, end):
                cover[count] = width * (pane - base)
                count += 1
        else:
            mark = (start | (step - 1)) + 1
            cover[count] = width * (start - base) + 2 + 2 * j
            count += 1
            while mark + step <= end:
                mark += step
                cover[count] = width * (mark - 1 - base) + 1 + 2 * j
                count += 1
            if mark < end:
                cover[count] = width * (end - 1 - base) + 1 + 2 * j
                count += 1
        bounds[i + 1] = count
    return first.size


@kernel
def weigh_landmarks(first: Ints, last: Ints, shift: int, steps: Ints) -> int:
    """How many rows `cover_landmarks` would list."""
    total = 0
    for i in range(first.size):
        start = first[i] + shift
        end = last[i] + shift
        j = steps.size - 1
        while j >= 0 and (start | (steps[j] - 1)) >= end:
            j -= 1
        rows = max(0, end - start)
        if j >= 0:
            rest = end - (start | (steps[j] - 1)) - 1
            rows = 1 + rest // steps[j] + (rest & (steps[j] - 1) > 0)
        total += rows
    return total
