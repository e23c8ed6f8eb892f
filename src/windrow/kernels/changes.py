"""Answers that are replaced: events of an epoch become cells (group, instant), and cells become rows with lifetimes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

Flags = NDArray[np.bool_]
NEVER = (1 << 63) - 1
"""The end of a row that stands when the epoch ends."""


@kernel
def make_cells(order: Ints, groups: Codes, times: Ints, place: Codes) -> tuple[Ints, Codes, Codes, Ints]:
    """One cell per group and instant with an event, in the order of group (as first seen) and time.

    `order` are the events by time; `place` has -1 for every group, also afterwards. Gives the events by cell, the cell
    of each event, and group and time of each cell. O(events).
    """
    many = order.size
    known = np.empty(many, np.int32)
    ends = np.empty(many + 1, np.int64)
    count = 0
    for i in range(many):
        group = groups[order[i]]
        if place[group] < 0:
            place[group] = count
            known[count] = group
            ends[count] = 0
            count += 1
        ends[place[group]] += 1
    total = 0
    for k in range(count):
        here = ends[k]
        ends[k] = total
        total += here
    by_cell = np.empty(many, np.int64)
    for i in range(many):
        k = place[groups[order[i]]]
        by_cell[ends[k]] = order[i]
        ends[k] += 1
    cells = np.empty(many, np.int32)
    cell_groups = np.empty(many, np.int32)
    cell_times = np.empty(many, np.int64)
    cell = -1
    at = 0
    for k in range(count):
        place[known[k]] = -1
        start = at
        while at < ends[k]:
            event = by_cell[at]
            if at == start or times[event] != cell_times[cell]:
                cell += 1
                cell_groups[cell] = known[k]
                cell_times[cell] = times[event]
            cells[event] = cell
            at += 1
    return by_cell, cells, cell_groups[: cell + 1].copy(), cell_times[: cell + 1].copy()


@kernel
def run_totals(cell_groups: Codes, state: Ints, words: Ints) -> None:
    """words[w, c], the change at each cell, becomes the total there; state[w, g] that at the end of the epoch."""
    for w in range(words.shape[0]):
        for c in range(cell_groups.size):
            state[w, cell_groups[c]] += words[w, c]
            words[w, c] = state[w, cell_groups[c]]


@kernel
def mark_changes(
    cell_groups: Codes, words: NDArray[Any], null: Flags, state: NDArray[Any], state_null: Flags, changed: Flags
) -> None:
    """Mark the cells whose answer is not that of the cell before, or for a group's first cell not the standing one."""
    for c in range(cell_groups.size):
        group = cell_groups[c]
        if c and cell_groups[c - 1] == group:
            if null[c] != null[c - 1]:
                changed[c] = True
            elif not null[c]:
                for w in range(words.shape[0]):
                    changed[c] |= words[w, c] != words[w, c - 1]
        elif null[c] != state_null[group]:
            changed[c] = True
        elif not null[c]:
            for w in range(words.shape[0]):
                changed[c] |= words[w, c] != state[w, group]


@kernel
def replace_rows(
    cell_groups: Codes, cell_times: Ints, alive: Flags, changed: Flags, standing: Flags
) -> tuple[Ints, Ints, Ints]:
    """The rows that the cells make of each group's answer: (their cells, their ends), and the cells that cut a row.

    `standing` says which groups have a row from before, and becomes which have one now. A row lasts until the next
    cell of its group with another answer, or with none.
    """
    made = np.empty(cell_groups.size, np.int64)
    ends = np.empty(cell_groups.size, np.int64)
    cuts = np.empty(cell_groups.size, np.int64)
    rows = 0
    cut = 0
    fresh = False  # the row that the group has now began in this epoch
    for c in range(cell_groups.size):
        group = cell_groups[c]
        if c == 0 or cell_groups[c - 1] != group:
            fresh = False
        if standing[group] and alive[c] and not changed[c]:
            continue
        if standing[group]:
            if fresh:
                ends[rows - 1] = cell_times[c]
            else:
                cuts[cut] = c
                cut += 1
        standing[group] = alive[c]
        if alive[c]:
            made[rows] = c
            ends[rows] = NEVER
            rows += 1
            fresh = True
    return made[:rows].copy(), ends[:rows].copy(), cuts[:cut].copy()
