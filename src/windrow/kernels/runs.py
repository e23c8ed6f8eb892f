"""Sorted runs over base intervals of panes (002, sections 3.1.1 and 3.3), and searches over several runs at once.

Level l keeps the entries of panes i·2**l .. (i+1)·2**l - 1 as one run, in order of group and key, at the same
positions as on level 0: `keys[l]`, `groups[l]` (no columns when there is one group only), and `sums[k, l]`, which has
the sum of weight k over the entries of the run up to there. A pane's entries begin at bounds[pane].
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from windrow.kernels.jit import Codes, Ints, kernel

MOST_RUNS = 128
"""A window of less than 2**63 panes is made of fewer runs."""

Runs: TypeAlias = tuple[Ints, Ints, Ints, int, Ints, int]
"""Keys, groups, sums, the number of levels, bounds, and the pane `origin` to which bounds[0] belongs."""
Rows: TypeAlias = tuple[Ints, Ints, Ints, Codes]
"""First, last, offsets, present: rows offsets[w] .. offsets[w+1]-1 are panes first[w] .. last[w]-1 of a group each."""


@kernel
def merge_levels(
    keys: Ints, groups: Ints, sums: Ints, levels: int, bounds: Ints, origin: int, first: int, done: Ints
) -> None:
    """Make the runs of all levels that the panes from `first` on are enough for and that are not there yet.

    bounds[0] belongs to pane `origin`; done[l] is the pane at which the next run of level l begins. O(entries) per
    level, so O(log panes) for each entry in its life.
    """
    for level in range(1, levels):
        width = 1 << level
        pane = ((max(done[level], first) + width - 1) >> level) << level
        while pane + width - origin < bounds.size:
            start, middle = bounds[pane - origin], bounds[pane + (width >> 1) - origin]
            _merge(keys, groups, sums, level, start, middle, bounds[pane + width - origin])
            pane += width
        done[level] = pane


@kernel
def _merge(keys: Ints, groups: Ints, sums: Ints, level: int, start: int, middle: int, stop: int) -> None:
    """Two neighbouring runs of the level below become one."""
    below = level - 1
    a, b = start, middle
    for at in range(start, stop):
        left = b == stop
        if not left and a < middle:
            if groups.shape[1] and groups[below, a] != groups[below, b]:
                left = groups[below, a] < groups[below, b]
            else:
                left = keys[below, a] <= keys[below, b]
        e = a if left else b
        keys[level, at] = keys[below, e]
        if groups.shape[1]:
            groups[level, at] = groups[below, e]
        for k in range(sums.shape[0]):
            weight = sums[k, below, e]
            if e > (start if left else middle):
                weight -= sums[k, below, e - 1]
            sums[k, level, at] = weight + (sums[k, level, at - 1] if at > start else 0)
        if left:
            a += 1
        else:
            b += 1


@kernel
def totals(index: Runs, rows: Rows) -> Ints:
    """The sum of weight 0 of each answer row: O(log panes · log entries)."""
    _, groups, sums, levels, bounds, origin = index
    first, last, offsets, present = rows
    out = np.zeros(present.size, np.int64)
    runs, low, high = _blank_runs()
    for w in range(first.size):
        count = _decompose(first[w], last[w], levels, runs)
        for row in range(offsets[w], offsets[w + 1]):
            _segments(groups, bounds, origin, runs, count, present[row], low, high)
            for r in range(count):
                out[row] += _weight(sums, 0, runs[0, r], bounds[runs[1, r] - origin], low[r], high[r])
    return out


@kernel
def below(index: Runs, rows: Rows) -> Ints:
    """All weights [k, rows], over the entries of the window whose key is below its first pane.

    O(log panes · log entries) per row.
    """
    keys, groups, sums, levels, bounds, origin = index
    first, last, offsets, present = rows
    out = np.zeros((sums.shape[0], present.size), np.int64)
    runs, low, high = _blank_runs()
    for w in range(first.size):
        count = _decompose(first[w], last[w], levels, runs)
        for row in range(offsets[w], offsets[w + 1]):
            _segments(groups, bounds, origin, runs, count, present[row], low, high)
            for r in range(count):
                level, start = runs[0, r], bounds[runs[1, r] - origin]
                stop = _lower(keys[level], low[r], high[r], first[w])
                for k in range(sums.shape[0]):
                    out[k, row] += _weight(sums, k, level, start, low[r], stop)
    return out


@kernel
def select(index: Runs, rows: Rows, positions: Ints) -> Ints:
    """The keys at positions [k, rows] of each row's sorted entries, weight 0 counted from 1; 0 for no position.

    O(log² W · log log W) per answer, where W is the window's entries: each step takes a key from the longest piece
    that is left and cuts every piece there.
    """
    keys, groups, sums, levels, bounds, origin = index
    first, last, offsets, present = rows
    out = np.zeros(positions.shape, np.int64)
    runs, low, high = _blank_runs()
    left, right, cut = np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64)
    for w in range(first.size):
        count = _decompose(first[w], last[w], levels, runs)
        for row in range(offsets[w], offsets[w + 1]):
            _segments(groups, bounds, origin, runs, count, present[row], low, high)
            before = 0
            for r in range(count):
                before += _weight_until(sums, runs[0, r], bounds[runs[1, r] - origin], low[r])
            for k in range(positions.shape[0]):
                if positions[k, row] > 0:
                    left[:count], right[:count] = low[:count], high[:count]
                    out[k, row] = _select(
                        keys, sums, bounds, origin, runs, count, left, right, cut, before + positions[k, row]
                    )
    return out


@kernel
def _select(
    keys: Ints,
    sums: Ints,
    bounds: Ints,
    origin: int,
    runs: Ints,
    count: int,
    left: Ints,
    right: Ints,
    cut: Ints,
    wanted: int,
) -> int:
    """The smallest key with at least the wanted weight up to it; the pieces left .. right shrink around it.

    Pieces of one stream look alike, so the key is looked for in the longest one in proportion, a little to the side
    that is still far away; every third step halves instead, whatever the data.
    """
    below, above = 0, 0
    for r in range(count):
        start = bounds[runs[1, r] - origin]
        below += _weight_until(sums, runs[0, r], start, left[r])
        above += _weight_until(sums, runs[0, r], start, right[r])
    step = 0
    while True:
        longest = 0
        for r in range(1, count):
            if right[r] - left[r] > right[longest] - left[longest]:
                longest = r
        size = right[longest] - left[longest]
        at = size // 2
        if step % 3 < 2:
            share = (wanted - below) / (above - below)
            aside = np.sqrt(size) if share < 0.5 else -np.sqrt(size)
            at = int(min(max(share * size + aside, 0.0), size - 1.0))
        step += 1
        key = keys[runs[0, longest], left[longest] + at]
        weight = 0
        for r in range(count):
            cut[r] = _lower(keys[runs[0, r]], left[r], right[r], key)
            weight += _weight_until(sums, runs[0, r], bounds[runs[1, r] - origin], cut[r])
        if weight >= wanted:
            above = weight
            right[:count] = cut[:count]
            continue
        below = 0
        for r in range(count):
            left[r] = _upper(keys[runs[0, r]], cut[r], right[r], key)
            below += _weight_until(sums, runs[0, r], bounds[runs[1, r] - origin], left[r])
        if below >= wanted:
            return int(key)


@kernel
def _blank_runs() -> tuple[Ints, Ints, Ints]:
    """Level and first pane of each run; the piece of it that belongs to a group."""
    return np.empty((2, MOST_RUNS), np.int64), np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int64)


@kernel
def _decompose(first: int, last: int, levels: int, runs: Ints) -> int:
    """The panes first .. last-1 as base intervals, at most two of each level (002, Theorem 3.1)."""
    count = 0
    pane = first
    while pane < last:
        level = 0
        while level + 1 < levels and pane & ((2 << level) - 1) == 0 and pane + (2 << level) <= last:
            level += 1
        runs[0, count], runs[1, count] = level, pane
        count += 1
        pane += 1 << level
    return count


@kernel
def _segments(
    groups: Ints, bounds: Ints, origin: int, runs: Ints, count: int, group: int, low: Ints, high: Ints
) -> None:
    """The entries of one group in each run."""
    for r in range(count):
        level, pane = runs[0, r], runs[1, r]
        low[r], high[r] = bounds[pane - origin], bounds[pane + (1 << level) - origin]
        if groups.shape[1]:
            low[r] = _lower(groups[level], low[r], high[r], group)
            high[r] = _upper(groups[level], low[r], high[r], group)


@kernel
def _weight_until(sums: Ints, level: int, start: int, stop: int) -> int:
    """How much is in the run that begins at start, up to stop; without weights, every entry is one."""
    if sums.shape[0] == 0:
        return stop - start
    return int(sums[0, level, stop - 1]) if stop > start else 0


@kernel
def _weight(sums: Ints, k: int, level: int, start: int, low: int, high: int) -> int:
    """The weight k of entries low .. high-1 of the run that begins at start."""
    if sums.shape[0] == 0:
        return high - low
    if high <= low:
        return 0
    return int(sums[k, level, high - 1] - (sums[k, level, low - 1] if low > start else 0))


@kernel
def _lower(sorted_: Ints, low: int, high: int, key: int) -> int:
    """The first position in low .. high whose entry is not below the key."""
    while low < high:
        middle = (low + high) >> 1
        if sorted_[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _upper(sorted_: Ints, low: int, high: int, key: int) -> int:
    """The first position in low .. high whose entry is above the key, which is often the first."""
    step = 1
    while low < high and sorted_[low] == key:
        while low + step < high and sorted_[low + step] == key:
            low += step
            step *= 2
        if step == 1:
            return low + 1
        step = 1
    return low
