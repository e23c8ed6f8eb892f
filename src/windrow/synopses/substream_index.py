"""What all substream filters have: levels with one timestamp per key, a search tree over each, and lookups of many.

Space O(levels · keys). A lookup costs O(keys found · log₈ keys), whatever the number of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels import substream
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.substream import NEVER

FANOUT = 8


@dataclass(frozen=True)
class Candidates:
    """The keys found by several lookups, flat, ascending per lookup."""

    offsets: Ints
    """Keys offsets[i]..offsets[i+1]-1 belong to lookup i."""
    keys: Codes
    sure: NDArray[np.bool_]
    """Which of them are certainly in the answer; the others must be checked."""

    def __len__(self) -> int:
        return int(self.offsets[-1])


class SubstreamIndex:
    """Levels × keys of timestamps that only move forward."""

    def __init__(self, levels: int, keys: int = 0) -> None:
        self.keys = 0
        self._allocate(levels, FANOUT)
        self.reserve(keys)

    @property
    def levels(self) -> int:
        """How many timestamps are kept per key."""
        return len(self.newest)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.newest.nbytes + self.oldest.nbytes)

    @property
    def timestamps(self) -> Ints:
        """The timestamps [levels, keys]; NEVER where a level has no element of a key."""
        return self.newest[:, : self.keys]

    def reserve(self, keys: int) -> None:
        """Know keys 0..keys-1."""
        if keys > self.starts[1]:
            self._replace(self.timestamps, keys + (keys >> 1))
        self.keys = max(self.keys, keys)

    def select(self, keys: Any) -> None:
        """Keep these keys only, renumbered in this order."""
        self._replace(self.newest[:, keys], len(keys))
        self.keys = len(keys)

    def _replace(self, timestamps: Ints, room: int) -> None:
        self._allocate(self.levels, room)
        self.newest[:, : timestamps.shape[1]] = timestamps
        substream.build(self.newest, self.oldest, self.starts)

    def _allocate(self, levels: int, room: int) -> None:
        sizes = [_padded(room)]
        while sizes[-1] > FANOUT:
            sizes.append(_padded(sizes[-1] // FANOUT))
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.newest: Ints = np.full((levels, int(self.starts[-1])), NEVER, np.int64)
        self.oldest: Ints = np.full((levels, int(self.starts[-1] - self.starts[1])), NEVER, np.int64)

    def _grow_for(self, keys: Codes) -> None:
        if len(keys):
            self.reserve(int(np.max(keys)) + 1)

    def find(self, starts: Ints, likely: Ints, certain: Ints, below: bool) -> Candidates:
        """For window (starts[i], now]: keys by level likely[i], sure by level certain[i] (`kernels.list_all`)."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        room = int(self.starts[1])
        found, sure = np.empty(2 * room, np.int32), np.empty(2 * room, np.bool_)
        spare = np.empty(room, np.int32)
        done = 0
        while True:
            done = substream.list_all(
                self.newest, self.oldest, self.starts, likely, certain, below, starts, done, offsets, spare, found, sure
            )
            if done == len(starts):
                size = int(offsets[-1])
                return Candidates(offsets, found[:size], sure[:size])
            found, sure = (np.concatenate([array, np.empty(len(array) + room, array.dtype)]) for array in (found, sure))


def _padded(size: int) -> int:
    return -(-max(size, 1) // FANOUT) * FANOUT
