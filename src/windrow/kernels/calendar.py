"""A calendar queue in flat arrays: a chain of slots per partition of time, and a heap for the day that has begun.

Day d is the ticks t with t >> shift = d; the days d, d + partitions, d + 2·partitions, … share a partition (later ones
wait for another lap). Slots that are no longer LIVE when they are met fall out: something else has ended them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

NONE = -1
LIVE = 1  # as in kernels/state.py: a kernel sees the globals of its own file only
ENDED = 3


@kernel
def schedule(
    base: int, stop: int, never: int, shift: int, day: int, exp: Ints, state: NDArray[np.uint8],
    firsts: Codes, later: Codes, ends: Ints, slots: Codes, held: int,
) -> tuple[Ints, Codes, int]:  # fmt: skip
    """Put the living slots base … stop-1 into their partitions; those of `day` or before go to the heap.

    The heap is (ends, slots, held), and is returned: it may have been enlarged.
    """
    for slot in range(base, stop):
        if exp[slot] == never or state[slot] != LIVE:
            continue
        due = exp[slot] >> shift
        if due <= day:
            if held == ends.size:
                ends, slots = _enlarged(ends, slots)
            _push(ends, slots, held, exp[slot], slot)
            held += 1
        else:
            partition = due & (firsts.size - 1)
            later[slot] = firsts[partition]
            firsts[partition] = slot
    return ends, slots, held


@kernel
def pass_days(
    upto: int, shift: int, day: int, exp: Ints, state: NDArray[np.uint8],
    firsts: Codes, later: Codes, ends: Ints, slots: Codes, held: int,
) -> tuple[Ints, Ints, Codes, int, int, int]:  # fmt: skip
    """Time comes to `upto`: the slots that end, the heap, and how many slots and partitions were looked at.

    Cost: the partitions passed (each at most once) and the slots in them; log(slots) for each slot of the last day.
    """
    out: Ints = np.empty(16, np.int64)
    given = 0
    looked = 0
    today = upto >> shift
    if today > day:  # all of the heap is due: no need to sort it
        for i in range(held):
            looked += 1
            if state[slots[i]] == LIVE:
                if given == out.size:
                    out = _longer(out)
                state[slots[i]] = ENDED
                out[given] = slots[i]
                given += 1
        held = 0
    passed = min(max(today - day, 0), firsts.size)
    for step in range(passed):
        partition = (today - step) & (firsts.size - 1)
        slot = int(firsts[partition])
        firsts[partition] = NONE
        while slot != NONE:
            following = int(later[slot])
            looked += 1
            if state[slot] == LIVE:
                if exp[slot] <= upto:
                    if given == out.size:
                        out = _longer(out)
                    state[slot] = ENDED
                    out[given] = slot
                    given += 1
                elif exp[slot] >> shift == today:
                    if held == ends.size:
                        ends, slots = _enlarged(ends, slots)
                    _push(ends, slots, held, exp[slot], slot)
                    held += 1
                else:
                    later[slot] = firsts[partition]
                    firsts[partition] = slot
            slot = following
    while held > 0 and ends[0] <= upto:
        slot = int(slots[0])
        held -= 1
        _pop(ends, slots, held)
        looked += 1
        if state[slot] == LIVE:
            if given == out.size:
                out = _longer(out)
            state[slot] = ENDED
            out[given] = slot
            given += 1
    return out[:given], ends, slots, held, looked, passed


@kernel
def _push(ends: Ints, slots: Codes, held: int, end: int, slot: int) -> None:
    """Add to the heap: O(log held)."""
    place = held
    while place > 0 and ends[(place - 1) >> 1] > end:
        above = (place - 1) >> 1
        ends[place] = ends[above]
        slots[place] = slots[above]
        place = above
    ends[place] = end
    slots[place] = slot


@kernel
def _pop(ends: Ints, slots: Codes, held: int) -> None:
    """Take the top away, when `held` are left: O(log held)."""
    end = ends[held]
    slot = slots[held]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= held:
            break
        if below + 1 < held and ends[below + 1] < ends[below]:
            below += 1
        if ends[below] >= end:
            break
        ends[place] = ends[below]
        slots[place] = slots[below]
        place = below
    ends[place] = end
    slots[place] = slot


@kernel
def _enlarged(ends: Ints, slots: Codes) -> tuple[Ints, Codes]:
    more_ends = np.empty(2 * ends.size, ends.dtype)
    more_ends[: ends.size] = ends
    more_slots = np.empty(2 * slots.size, slots.dtype)
    more_slots[: slots.size] = slots
    return more_ends, more_slots


@kernel
def _longer(out: Ints) -> Ints:
    more = np.empty(2 * out.size, out.dtype)
    more[: out.size] = out
    return more
