"""Slots of rows and their chains: rows with one code are linked from the newest to the oldest, so slots descend.

Every kernel works on flat arrays with one entry per slot. A dead slot is taken out of a chain by the first walk that
meets it, so that all walks together cost what they find, plus each dead slot once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

Flags = NDArray[np.uint8]

NONE = -1
DEAD = 0
"""Ended and settled: nobody sees it."""
LIVE = 1
CUT = 2
"""A negative tuple has set its end; `expire` has not given it yet."""
ENDED = 3
"""`expire` has given it; dead when the epoch is settled."""


@kernel
def link_slots(codes: Codes, begin: int, base: int, heads: Codes, after: Codes) -> int:
    """Put slot base+i into the chain of codes[i], from i = begin on; returns the first i whose code `heads` lacks.

    A negative code is in no chain.
    """
    for i in range(begin, codes.size):
        code = codes[i]
        if code >= heads.size:
            return i
        if code < 0:
            after[base + i] = NONE
        else:
            after[base + i] = heads[code]
            heads[code] = base + i
    return codes.size


@kernel
def probe_chains(
    codes: Codes,
    begin: int,
    slot: int,
    heads: Codes,
    after: Codes,
    state: Flags,
    floor: int,
    holes: bool,
    which: Ints,
    slots: Ints,
) -> tuple[int, int, int]:
    """All pairs (i, slot with codes[i] that is not dead) for i >= begin, until the room given is full.

    `slot` is where the chain of codes[begin] goes on (NONE: at its head). No slot below `floor` lives, and all others
    do unless there are `holes` (most of the time goes into memory far away: one place less per step counts). Returns
    the next (begin, slot) and the number of pairs; begin = codes.size when all are given.
    """
    given = 0
    for i in range(begin, codes.size):
        code = codes[i]
        if code < 0 or code >= heads.size:
            continue
        before = NONE
        at_head = i > begin or slot == NONE
        here = int(heads[code]) if at_head else int(slot)
        while here >= floor:
            if holes and state[here] == DEAD:
                here = int(after[here])
                if before != NONE:
                    after[before] = here
                elif at_head:
                    heads[code] = here
            else:
                if given == which.size:
                    return i, here, given
                which[given] = i
                slots[given] = here
                given += 1
                before = here
                here = int(after[here])
    return codes.size, NONE, given


@kernel
def count_chains(codes: Codes, begin: int, slot: int, heads: Codes, after: Codes, state: Flags, floor: int) -> int:
    """How many pairs `probe_chains` would still give."""
    count = 0
    for i in range(begin, codes.size):
        code = codes[i]
        if code < 0 or code >= heads.size:
            continue
        here = int(slot) if i == begin and slot != NONE else int(heads[code])
        while here >= floor:
            if state[here] != DEAD:
                count += 1
            here = int(after[here])
    return count


@kernel
def order_cuts(codes: Codes, ends: Ints, firsts: Codes) -> Ints:
    """The negative tuples by code, those with one code by their ends; `firsts` is all NONE, before and after.

    O(tuples), and log of their number for codes with many: nearly all have few, which a sort would be too dear for.
    """
    others = np.empty(codes.size, np.int32)  # the next tuple with the same code
    for i in range(codes.size - 1, -1, -1):
        code = codes[i]
        if 0 <= code < firsts.size:
            others[i] = firsts[code]
            firsts[code] = i
    order = np.empty(codes.size, np.int64)
    done = 0
    for i in range(codes.size):
        code = codes[i]
        if code < 0 or code >= firsts.size:
            order[done] = i
            done += 1
        elif firsts[code] != NONE:
            begin = done
            here = int(firsts[code])
            firsts[code] = NONE
            sorted_ = True
            while here != NONE:
                sorted_ = sorted_ and (done == begin or ends[order[done - 1]] <= ends[here])
                order[done] = here
                done += 1
                here = int(others[here])
            if not sorted_:
                group = order[begin:done].copy()
                order[begin:done] = group[np.argsort(ends[group])]
    return order


@kernel
def cut_chains(
    order: Ints,
    codes: Codes,
    times: Ints,
    ends: Ints,
    heads: Codes,
    after: Codes,
    ts: Ints,
    exp: Ints,
    was: Ints,
    state: Flags,
    floor: int,
    mark: int,
    found: Ints,
) -> int:
    """For negative tuple c a slot with codes[c], exp = ends[c] and ts < times[c], that ends at times[c] from now on.

    `order` sorts the tuples by code and end. Slots below `mark` (rows of earlier epochs) are tried first, in one walk
    for all tuples with one code: cost of a code = its chain until all are found, times log(tuples with that code).
    Returns how many were not found; found[c] is NONE for these.
    """
    missing = 0
    taken = np.zeros(order.size, np.int64)  # at the first place of each (code, end): how many have their slot
    begin = 0
    while begin < order.size:
        code = codes[order[begin]]
        stop = begin + 1
        while stop < order.size and codes[order[stop]] == code:
            stop += 1
        for place in range(begin, stop):
            found[order[place]] = NONE
        left = stop - begin
        before = NONE
        here = int(heads[code]) if 0 <= code < heads.size else int(NONE)
        while here >= floor and left > 0:
            following = int(after[here])
            if state[here] == DEAD:
                if before == NONE:
                    heads[code] = following
                else:
                    after[before] = following
                here = following
                continue
            if here < mark and _uncut(here, exp, was, state):
                place = _first_end(order, ends, begin, stop, exp[here])
                if place < stop and ends[order[place]] == exp[here]:
                    place_left = place + taken[place]
                    if place_left < stop:
                        tuple_ = order[place_left]
                        if ends[tuple_] == exp[here] and ts[here] < times[tuple_]:
                            _cut(here, times[tuple_], exp, state)
                            found[tuple_] = here
                            taken[place] += 1
                            left -= 1
            before = here
            here = following
        if left > 0:  # rows of this epoch, which tuple by tuple are seldom many
            for place in range(begin, stop):
                tuple_ = order[place]
                if found[tuple_] == NONE and 0 <= code < heads.size:
                    here = int(heads[code])
                    while here >= floor and found[tuple_] == NONE:
                        if _uncut(here, exp, was, state) and exp[here] == ends[tuple_] and ts[here] < times[tuple_]:
                            _cut(here, times[tuple_], exp, state)
                            found[tuple_] = here
                        here = int(after[here])
                if found[tuple_] == NONE:
                    missing += 1
        begin = stop
    return missing


@kernel
def _uncut(slot: int, exp: Ints, was: Ints, state: Flags) -> bool:
    return bool((state[slot] == LIVE or state[slot] == ENDED) and exp[slot] == was[slot])


@kernel
def _cut(slot: int, time: int, exp: Ints, state: Flags) -> None:
    exp[slot] = time
    if state[slot] == LIVE:
        state[slot] = CUT


@kernel
def _first_end(order: Ints, ends: Ints, low: int, high: int, end: int) -> int:
    """The first place in order[low:high] with an end of at least `end`."""
    while low < high:
        middle = (low + high) // 2
        if ends[order[middle]] < end:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def due_announced(announced: Ints, count: int, upto: int, exp: Ints, state: Flags) -> tuple[Ints, int]:
    """Of slots announced to end: those that are due, once each; the others move to the front, and are counted."""
    out = np.empty(count, np.int64)
    given = 0
    left = 0
    for i in range(count):
        slot = announced[i]
        if state[slot] != LIVE and state[slot] != CUT:
            continue
        if exp[slot] <= upto:
            state[slot] = ENDED
            out[given] = slot
            given += 1
        else:
            announced[left] = slot
            left += 1
    return out[:given], left


@kernel
def due_in_order(first: int, used: int, upto: int, exp: Ints, state: Flags) -> tuple[Ints, int]:
    """The due slots of a queue whose front is `first`, and its new front: cost = slots that leave the queue."""
    stop = first
    while stop < used and (state[stop] != LIVE or exp[stop] <= upto):
        stop += 1
    out = np.empty(stop - first, np.int64)
    given = 0
    for slot in range(first, stop):
        if state[slot] == LIVE:
            state[slot] = ENDED
            out[given] = slot
            given += 1
    return out[:given], stop


@kernel
def due_anywhere(floor: int, used: int, upto: int, exp: Ints, state: Flags) -> Ints:
    """The due slots, found by looking at every slot."""
    out = np.empty(64, np.int64)
    given = 0
    for slot in range(floor, used):
        if state[slot] == LIVE and exp[slot] <= upto:
            if given == out.size:
                more = np.empty(2 * given, np.int64)
                more[:given] = out
                out = more
            state[slot] = ENDED
            out[given] = slot
            given += 1
    return out[:given]


@kernel
def bury(slots: Ints, state: Flags) -> None:
    """These slots are dead."""
    for i in range(slots.size):
        state[slots[i]] = DEAD


@kernel
def first_living(floor: int, used: int, state: Flags) -> int:
    """The first slot from `floor` on that is not dead."""
    while floor < used and state[floor] == DEAD:
        floor += 1
    return floor


@kernel
def recode_slots(codes: Codes, mapping: Codes, state: Flags) -> None:
    """Give each slot the new code of its code; a dead one gets none."""
    for slot in range(codes.size):
        if state[slot] == DEAD:
            codes[slot] = NONE
        elif codes[slot] >= 0:
            codes[slot] = mapping[codes[slot]]
