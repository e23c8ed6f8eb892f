"""Running (prefix) sums over panes, and the presence of groups in windows (thesis 2.3.4, running synopsis)."""

from __future__ import annotations

from windrow.kernels.jit import Codes, Ints, kernel


@kernel
def append_prefixes(prefixes: Ints, at: int, partials: Ints, order: Ints, groups: int) -> None:
    """prefixes [panes, words, groups] from row at+1 on; pane k is partials[:, order[k]] of [words, slots, groups]."""
    if groups == 1:
        # Panes mostly close in the order in which they were opened: then no look at the order is needed again.
        shuffled = 0
        for k in range(order.size):
            shuffled |= order[k] - k - order[0]
        for w in range(prefixes.shape[1]):
            total = prefixes[at, w, 0]
            if shuffled:
                for k in range(order.size):
                    total += partials[w, order[k], 0]
                    prefixes[at + k + 1, w, 0] = total
            elif order.size:
                source = partials[w, order[0] : order[0] + order.size, 0]
                target = prefixes[at + 1 : at + 1 + order.size, w, 0]
                for k in range(order.size):
                    total += source[k]
                    target[k] = total
        return
    for k in range(order.size):
        for w in range(prefixes.shape[1]):
            before = prefixes[at + k, w]
            after = prefixes[at + k + 1, w]
            delta = partials[w, order[k]]
            for g in range(groups):
                after[g] = before[g] + delta[g]


@kernel
def subtract_prefixes(
    prefixes: Ints, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes, out: Ints
) -> None:
    """out[:, offsets[i]:] = prefixes[last[i]] - prefixes[first[i]] for the groups present in window i."""
    for i in range(first.size):
        at = offsets[i]
        rows = offsets[i + 1] - at
        for w in range(prefixes.shape[1]):
            upper = prefixes[last[i], w]
            lower = prefixes[first[i], w]
            target = out[w, at : at + rows]
            if rows == groups:
                for g in range(groups):
                    target[g] = upper[g] - lower[g]
            else:
                for k in range(rows):
                    g = present[at + k]
                    target[k] = upper[g] - lower[g]


@kernel
def count_present(prefixes: Ints, first: Ints, last: Ints, groups: int, offsets: Ints) -> None:
    """offsets[i] = how many groups have rows in windows 0..i-1."""
    total = 0
    offsets[0] = 0
    for i in range(first.size):
        upper = prefixes[last[i], 0]
        lower = prefixes[first[i], 0]
        rows = 0
        for g in range(groups):
            rows += upper[g] != lower[g]
        total += rows
        offsets[i + 1] = total


@kernel
def list_present(prefixes: Ints, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes) -> None:
    """The groups with rows in each window, ascending, from offsets[i] on."""
    for i in range(first.size):
        at = offsets[i]
        end = offsets[i + 1]
        if end - at == groups:
            for g in range(groups):
                present[at + g] = g
        elif end > at:
            upper = prefixes[last[i], 0]
            lower = prefixes[first[i], 0]
            for g in range(groups):
                # Written before it is known to be wanted: no branch to mispredict; the next one overwrites it.
                present[at] = g
                at += upper[g] != lower[g]
                if at == end:
                    break


@kernel
def repeat_ticks(ticks: Ints, offsets: Ints, out: Ints) -> None:
    """out[offsets[i]:offsets[i+1]] = ticks[i]."""
    for i in range(ticks.size):
        tick = ticks[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = tick
