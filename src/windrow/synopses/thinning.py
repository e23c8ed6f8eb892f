"""Fewer entries per cell (pane and group), with a bound on what is lost; vectorised over all cells.

    by rank    m entries stand for all N values of a cell: every rank is off by at most N / m
    by count   m counters per cell (Misra & Gries 1982): every count is too low by at most N / (m + 1)
    halved     an open cell beyond 2c entries goes back to at most c; neighbours of low weight are put together, as in
               the quantile sketches of Manku, Rajagopalan & Lindsay (1998) and KLL: ranks are off by at most
               2 N log2(N / c) / c in the end

Everything is deterministic: the same values give the same entries, whatever the cut of the input. Partials of disjoint
cells are merged by putting their entries together, and the bounds add up to the same fraction of the union's N.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints
from windrow.synopses.entries import Entries


def cell_starts(entries: Entries) -> Ints:
    """Where each cell of entries in order begins."""
    if not len(entries):
        return np.empty(0, np.int64)
    fresh = (np.diff(entries.panes) != 0) | (np.diff(entries.groups) != 0)
    return np.concatenate([[0], np.flatnonzero(fresh) + 1])


def thin_ranks(entries: Entries, most: int) -> Entries:
    """At most so many entries per cell, at even distances in rank; the smallest and the greatest value stay."""
    starts = cell_starts(entries)
    sizes = np.diff(np.append(starts, len(entries)))
    large = np.flatnonzero(sizes > most)
    if not len(large):
        return entries
    ends = np.cumsum(entries.counts)
    low, high = starts[large], starts[large] + sizes[large]
    before = ends[low] - entries.counts[low]
    totals = ends[high - 1] - before
    steps = np.arange(most + 1)
    # floor(j N / m) without j N, which may not fit in 64 bits.
    edges = totals[:, None] // most * steps + totals[:, None] % most * steps // most
    ranks = (edges[:, :-1] + edges[:, 1:]) // 2
    ranks[:, 0], ranks[:, -1] = 0, totals - 1
    chosen = np.searchsorted(ends, (before[:, None] + ranks).reshape(-1), "right")
    kept = entries[chosen]
    sampled = Entries(kept.panes, kept.groups, kept.codes, np.diff(edges, axis=1).reshape(-1))
    small = np.repeat(sizes <= most, sizes)
    return Entries.joined([entries[small], sampled]).counted()


def thin_counts(entries: Entries, most: int) -> tuple[Entries, Entries]:
    """At most so many counters per cell; and what every count of the cells that lost something may be too low by."""
    starts = cell_starts(entries)
    sizes = np.diff(np.append(starts, len(entries)))
    large = sizes > most
    if not large.any():
        return entries, Entries.none()
    cell = np.repeat(np.arange(len(starts)), sizes)
    order = np.lexsort((-entries.counts, cell))
    cut = np.zeros(len(starts), np.int64)
    cut[large] = entries.counts[order[starts[large] + most]]
    counts = entries.counts - cut[cell]
    left = Entries(entries.panes, entries.groups, entries.codes, counts)[counts > 0]
    at = starts[large]
    return left, Entries(entries.panes[at], entries.groups[at], np.zeros(len(at), np.int64), cut[large])


def halve_ranks(entries: Entries, most: int) -> Entries:
    """Cells of more than 2 `most` entries get at most `most`, of which the light ones weigh twice as much, or more."""
    starts = cell_starts(entries)
    sizes = np.diff(np.append(starts, len(entries)))
    large = np.repeat(sizes > 2 * most, sizes)
    if not large.any():
        return entries
    parts, rest = [entries[~large]], entries[large]
    while len(rest):
        rest = _paired(rest)
        starts = cell_starts(rest)
        sizes = np.diff(np.append(starts, len(rest)))
        done = np.repeat(sizes <= most, sizes)
        parts.append(rest[done])
        rest = rest[~done]
    return Entries.joined(parts).counted()


def _paired(entries: Entries) -> Entries:
    """Of every two neighbours among the lighter half of a cell's entries one goes, and leaves its weight."""
    starts = cell_starts(entries)
    sizes = np.diff(np.append(starts, len(entries)))
    cell = np.repeat(np.arange(len(starts)), sizes)
    by_weight = np.lexsort((entries.counts, cell))
    median = entries.counts[by_weight[starts + sizes // 2]]
    light = np.flatnonzero(entries.counts <= median[cell])
    number = np.arange(len(light)) - np.searchsorted(light, starts)[cell[light]]
    first = np.flatnonzero((number % 2 == 0) & (np.append(cell[light][1:], -1) == cell[light]))
    one, other = light[first], light[first + 1]
    # In turns the smaller and the greater one stays, so that the errors do not add up in one direction.
    smaller = (number[first] // 2) % 2 == 0
    stays, goes = np.where(smaller, one, other), np.where(smaller, other, one)
    counts = entries.counts.copy()
    counts[stays] += counts[goes]
    kept = np.ones(len(entries), np.bool_)
    kept[goes] = False
    return Entries(entries.panes, entries.groups, entries.codes, counts)[kept]
