"""Texts of any length in one run of bytes: copied by place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Ints, kernel


@kernel
def text_offsets(starts: Ints, places: Ints, offsets: NDArray[Any]) -> int:
    """Where each of the chosen texts begins when they stand one after the other; returns the bytes of all."""
    total = 0
    for i in range(places.size):
        offsets[i] = total
        total += starts[places[i] + 1] - starts[places[i]]
    offsets[places.size] = total
    return total


@kernel
def copy_texts(starts: Ints, data: NDArray[np.uint8], places: Ints, out: NDArray[np.uint8]) -> None:
    """The bytes of the chosen texts, one after the other."""
    to = 0
    for i in range(places.size):
        for place in range(starts[places[i]], starts[places[i] + 1]):
            out[to] = data[place]
            to += 1
