"""Sliding top-k lists (thesis chapter 6, Algorithm 6): global counters of one group at a time."""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel


@kernel
def slide_lists(
    panes: Ints,
    places: Ints,
    counts: Ints,
    starts: Ints,
    row_group: Ints,
    row_first: Ints,
    row_last: Ints,
    above: Ints,
    totals: Ints,
    live: Ints,
    where: Ints,
    sizes: Ints,
    out_places: Ints,
    out_counts: Ints,
    fill: bool,
) -> None:
    """Per answer row, the places whose total over panes row_first..row_last-1 exceeds `above`.

    Entries starts[g]..starts[g+1]-1 are those of group g, by pane; rows are in order of group. Without `fill` only
    sizes[row] is told; with it the rows are written one after the other. Each entry enters and leaves once while the
    windows of a group advance; then a row costs the counters that are not zero.
    """
    at = 0
    group = -1
    begin = 0
    end = 0
    low = 0
    high = 0
    many = 0
    for row in range(row_group.size):
        if row_group[row] != group or row_first[row] < low or row_last[row] < high:
            while many > 0:
                many -= 1
                totals[live[many]] = 0
            group = row_group[row]
            begin = starts[group]
            end = begin
            stop = starts[group + 1]
        low = row_first[row]
        high = row_last[row]
        while end < stop and panes[end] < high:
            place = places[end]
            if totals[place] == 0:
                where[place] = many
                live[many] = place
                many += 1
            totals[place] += counts[end]
            end += 1
        while begin < end and panes[begin] < low:
            place = places[begin]
            totals[place] -= counts[begin]
            if totals[place] == 0:
                many -= 1
                moved = live[many]
                live[where[place]] = moved
                where[moved] = where[place]
            begin += 1
        found = 0
        for i in range(many):
            if totals[live[i]] > above[row]:
                if fill:
                    out_places[at] = live[i]
                    out_counts[at] = totals[live[i]]
                    at += 1
                found += 1
        sizes[row] = found
    while many > 0:
        many -= 1
        totals[live[many]] = 0
