"""Operators that depend only on how many copies of a row each side has, swept through the instants of an epoch.

A weight says which side changes, and how: ±1 one copy on the left, ±2 one copy on the right.
"""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel
from windrow.kernels.schedule import Weights

LEFT_COPIES, RIGHT_COPIES, BEFORE, NEWEST = 0, 1, 2, 3
"""Words of a row. The last two are -1 between epochs: its copies before the instant in hand, and the newest output row
of this epoch that has no end yet."""
DISTINCT, EXCEPT_ALL, EXCEPT, INTERSECT_ALL, INTERSECT = range(5)


@kernel
def note_events(
    codes: Ints,
    ts: Ints,
    exp: Ints,
    weight: int,
    upto: int,
    event_codes: Ints,
    event_times: Ints,
    event_weights: Weights,
    count: int,
) -> int:
    """Append the changes of rows at their ts, and those at their exp, by the opposite weight, that are in the epoch."""
    for i in range(codes.size):
        event_codes[count], event_times[count], event_weights[count] = codes[i], ts[i], weight
        count += 1
        if exp[i] <= upto:
            event_codes[count], event_times[count], event_weights[count] = codes[i], exp[i], -weight
            count += 1
    return count


@kernel
def sweep(
    codes: Ints,
    times: Ints,
    weights: Weights,
    order: Ints,
    rule: int,
    never: int,
    words: Ints,
    came_codes: Ints,
    came_ts: Ints,
    came_exp: Ints,
    older: Ints,
    cut_codes: Ints,
    cut_ts: Ints,
) -> tuple[int, int, int, bool]:
    """Apply the events, instant by instant; returns (rows that came, rows cut, change of live rows, all is well).

    `order` gives the events by time. Only the net change of an instant is seen. An output row that must go is one of
    this epoch, which then comes with that end, as long as there is one; `older` links those of equal rows. No event
    changes the output by more than one copy, so there is at most one output row for each event. O(events).
    """
    came = 0
    cut = 0
    live = 0
    sound = True
    start = 0
    while start < order.size:
        now = times[order[start]]
        stop = start
        while stop < order.size and times[order[stop]] == now:
            event = order[stop]
            code = codes[event]
            left, right = words[code, LEFT_COPIES], words[code, RIGHT_COPIES]
            if words[code, BEFORE] < 0:
                words[code, BEFORE] = 2 * _copies(rule, left, right) + ((left | right) != 0)
            if weights[event] & 1:
                words[code, LEFT_COPIES] = left + weights[event]
            else:
                words[code, RIGHT_COPIES] = right + (weights[event] >> 1)
            stop += 1
        for i in range(start, stop):
            code = codes[order[i]]
            before = words[code, BEFORE]
            if before < 0:
                continue
            words[code, BEFORE] = -1
            left, right = words[code, LEFT_COPIES], words[code, RIGHT_COPIES]
            sound = sound and left >= 0 and right >= 0
            live += int((left | right) != 0) - (before & 1)
            change = _copies(rule, left, right) - (before >> 1)
            for _ in range(change):
                came_codes[came], came_ts[came], came_exp[came] = code, now, never
                older[came] = words[code, NEWEST]
                words[code, NEWEST] = came
                came += 1
            for _ in range(-change):
                newest = words[code, NEWEST]
                if newest >= 0:
                    came_exp[newest] = now
                    words[code, NEWEST] = older[newest]
                else:
                    cut_codes[cut], cut_ts[cut] = code, now
                    cut += 1
        start = stop
    for i in range(came):
        words[came_codes[i], NEWEST] = -1
    return came, cut, live, sound


@kernel
def _copies(rule: int, left: int, right: int) -> int:
    """How many copies are in the output."""
    if rule == EXCEPT_ALL:
        return max(left - right, 0)
    if rule == INTERSECT_ALL:
        return min(left, right)
    if rule == EXCEPT:
        return int(left > 0 and right == 0)
    if rule == INTERSECT:
        return int(left > 0 and right > 0)
    return int(left > 0)
