"""A hierarchical timing wheel in flat arrays: entries (time, payload, weight) that leave when their time comes.

A time is read as eight digits of eight bits. An entry hangs in the list of slot (level, digit): the level is the
highest digit in which its time differs from the present, the digit is its own there. When the present moves and
digit D is the highest that changes, all entries of lower levels are due, and so are those on level D in the slots that
were passed; the slot that was reached is spread over lower levels. So an entry moves at most seven times in its life,
however it is spread in time, and a step looks at no more than 2048 slots. The lists are linked through `following`;
free entries are such a list too. (Calendar queues, thesis 3.5.2, have one level, whose width must be guessed.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel

LEVELS = 8
SLOTS = 256
FREE, USED, COUNT = 0, 1, 2
"""Fields: the first free entry or -1, how many entries were ever used, how many are there now."""
FIELDS = 3 + LEVELS
"""Then how many entries each level has."""

Weights = NDArray[np.int8]


@kernel
def add_entries(
    times: Ints,
    payloads: Ints,
    weights: Weights,
    begin: int,
    now: int,
    never: int,
    heads: Codes,
    following: Codes,
    kept_times: Ints,
    kept_payloads: Ints,
    kept_weights: Weights,
    fields: Ints,
) -> int:
    """Keep the entries with now < time < never; a single weight is that of all. Returns how many rows are done.

    Fewer rows than given means that the arrays are full: the caller enlarges them and goes on from there.
    """
    for i in range(begin, times.size):
        if times[i] <= now or times[i] == never:
            continue
        entry = fields[FREE]
        if entry >= 0:
            fields[FREE] = following[entry]
        elif fields[USED] < kept_times.size:
            entry = fields[USED]
            fields[USED] += 1
        else:
            return i
        kept_times[entry] = times[i]
        kept_payloads[entry] = payloads[i]
        kept_weights[entry] = weights[i] if weights.size > 1 else weights[0]
        fields[COUNT] += 1
        _hang(entry, times[i], now, heads, following, fields)
    return times.size


@kernel
def take_due(
    now: int,
    upto: int,
    heads: Codes,
    following: Codes,
    kept_times: Ints,
    kept_payloads: Ints,
    kept_weights: Weights,
    fields: Ints,
) -> tuple[Ints, Ints, Weights]:
    """Take out the entries with now < time <= upto, in any order; the present is `upto` from now on."""
    chain = -1
    count = 0
    top = _level(now, upto)
    for level in range(top + 1):
        if fields[3 + level] == 0:
            continue
        first, last = 0, SLOTS - 1
        if level == top:
            first, last = _digit(now, level) + 1, _digit(upto, level)
        for slot in range(level * SLOTS + first, level * SLOTS + last + 1):
            entry = int(heads[slot])
            heads[slot] = -1
            while entry >= 0:
                after = int(following[entry])
                fields[3 + level] -= 1
                if kept_times[entry] <= upto:
                    following[entry] = chain
                    chain = entry
                    count += 1
                else:
                    _hang(entry, kept_times[entry], upto, heads, following, fields)
                entry = after
    times = np.empty(count, np.int64)
    payloads = np.empty(count, np.int64)
    weights = np.empty(count, np.int8)
    last_entry = chain
    entry = chain
    for i in range(count):
        times[i] = kept_times[entry]
        payloads[i] = kept_payloads[entry]
        weights[i] = kept_weights[entry]
        last_entry = entry
        entry = int(following[entry])
    if count > 0:
        following[last_entry] = fields[FREE]
        fields[FREE] = chain
        fields[COUNT] -= count
    return times, payloads, weights


@kernel
def all_entries(
    heads: Codes, following: Codes, kept_times: Ints, kept_payloads: Ints, kept_weights: Weights, count: int
) -> tuple[Ints, Ints, Weights]:
    """Copies of all entries, in any order."""
    times = np.empty(count, np.int64)
    payloads = np.empty(count, np.int64)
    weights = np.empty(count, np.int8)
    i = 0
    for slot in range(heads.size):
        entry = int(heads[slot])
        while entry >= 0:
            times[i] = kept_times[entry]
            payloads[i] = kept_payloads[entry]
            weights[i] = kept_weights[entry]
            i += 1
            entry = int(following[entry])
    return times, payloads, weights


@kernel
def _hang(entry: int, time: int, now: int, heads: Codes, following: Codes, fields: Ints) -> None:
    level = _level(now, time)
    slot = level * SLOTS + _digit(time, level)
    following[entry] = heads[slot]
    heads[slot] = entry
    fields[3 + level] += 1


@kernel
def _level(now: int, time: int) -> int:
    """The highest digit in which two times differ; 0 if they are equal."""
    rest = np.uint64(now ^ time) >> np.uint64(8)
    level = 0
    while rest > np.uint64(0):
        rest >>= np.uint64(8)
        level += 1
    return level


@kernel
def _digit(time: int, level: int) -> int:
    """Digits of int64 in their order: the sign bit is flipped, so that negative times come first."""
    flipped = np.uint64(time) ^ np.uint64(1 << 63)
    return int(np.int64((flipped >> np.uint64(8 * level)) & np.uint64(255)))
