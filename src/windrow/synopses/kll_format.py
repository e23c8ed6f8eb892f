"""KLL sketches of doubles as bytes of Apache DataSketches, for KLL_SKETCH_AGG.

`kll_sketch_get_quantile_double`, `kll_sketch_merge_double` and the like of Spark read them, and so does
`datasketches.kll_doubles_sketch.deserialize`. A sketch with parameter k has at most `capacity(k, levels)` items; an
item of level h stands for 2**h values. Readers demand no more: a level may be fuller than its share, as it is in
Apache's own sketches between two compactions. NaN is no value to them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from windrow.aggregates.blobs import binaries
from windrow.kernels.jit import Floats, Ints
from windrow.kernels.kll import LEVELS

_FAMILY, _LEAST = 15, 8
"""The number of the family of sketches, and what every level has room for."""
_EMPTY, _SORTED, _SINGLE = 1, 2, 4
_HEAD, _EXTREMES = 5, 4
"""Words of 4 bytes in front of the levels, and of the least and the greatest value behind them."""


def capacity(k: int, levels: int) -> int:
    """How many items a sketch of so many levels has room for: k on top, two thirds of it below, and so on.

    >>> capacity(200, 1), capacity(200, 2), capacity(200, 14)
    (200, 333, 625)
    """
    return sum(max(_LEAST, _share(k, depth)) for depth in range(levels))


@cache
def capacities(k: int) -> Ints:
    """By number of levels."""
    return np.array([capacity(k, levels) for levels in range(LEVELS + 1)])


def _share(k: int, depth: int) -> int:
    """k (2/3)**depth, rounded as Apache does: in two steps when the level is deep."""
    if depth > 30:
        return _share(_share(k, depth // 2), depth - depth // 2)
    whole: int = (k << depth + 1) // 3**depth
    return (whole + 1) >> 1


def sketches(items: Floats, sizes: Ints, totals: Ints, extremes: Floats, k: int) -> pa.Array:
    """Sketch i has sizes[i, h] items in level h, of its totals[i] values; extremes are [least and greatest, i].

    All items follow each other, sketch by sketch and level by level, ascending in each.
    """
    rows, many = len(totals), sizes.sum(axis=1)
    used = LEVELS - np.argmax(sizes[:, ::-1] > 0, axis=1)
    several = totals > 1
    levels = np.where(several, used, 0)
    front = np.where(several, _HEAD + levels + _EXTREMES, 2)
    offsets = np.concatenate([[0], np.cumsum(front + 2 * many)])
    begin, words = offsets[:-1], np.zeros(int(offsets[-1]), np.uint32)
    words[begin] = np.select(
        [several, totals == 1], [_preamble(5, 1, _SORTED), _preamble(2, 2, _SINGLE)], _preamble(2, 1, _EMPTY)
    )
    words[begin + 1] = k | _LEAST << 16
    at = begin[several]
    words[at + 2], words[at + 3] = totals[several] & 0xFFFFFFFF, totals[several] >> 32
    words[at + 4] = k | levels[several] << 16
    # Items stand at the end of the room that there is; a level is where it begins.
    level = np.arange(int(levels.sum())) - np.repeat(np.cumsum(levels) - levels, levels)
    row = np.repeat(np.arange(rows), levels)
    before = (np.cumsum(sizes, axis=1) - sizes)[row, level]
    words[begin[row] + _HEAD + level] = capacities(k)[levels][row] - many[row] + before
    halves = np.ascontiguousarray(extremes[:, several].T, "<f8").view("<u4").reshape(-1, _EXTREMES)
    words[(at + _HEAD + levels[several])[:, None] + np.arange(_EXTREMES)] = halves
    place = np.repeat(begin + front - 2 * (np.cumsum(many) - many), 2 * many) + np.arange(2 * int(many.sum()))
    words[place] = np.ascontiguousarray(items, "<f8").view("<u4")
    return binaries(4 * offsets, words)


def _preamble(ints: int, version: int, flags: int) -> int:
    return ints | version << 8 | _FAMILY << 16 | flags << 24
