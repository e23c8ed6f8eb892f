"""Of events with several copies of a value, those that matter to a set: the first that comes and the last that goes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Codes, Ints, kernel


@kernel
def first_and_last(order: Ints, codes: Codes, sign: NDArray[np.int8], copies: Ints, changes: NDArray[np.int8]) -> int:
    """Count copies[code] along the events; changes[i] = 1 where a value comes to the set, -1 where it leaves, else 0.

    Events with a negative code count for nothing. Copies may fall below zero until the end of an instant. Returns by
    how much the set has grown.
    """
    grown = 0
    for i in range(order.size):
        event = order[i]
        code = codes[event]
        changes[event] = 0
        if code < 0:
            continue
        before = copies[code]
        copies[code] = before + sign[event]
        if before <= 0 and copies[code] > 0:
            changes[event] = 1
            grown += 1
        elif before > 0 and copies[code] <= 0:
            changes[event] = -1
            grown -= 1
    return grown
