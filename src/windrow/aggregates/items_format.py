"""Frequent-items sketches as bytes of Apache DataSketches, for ITEMS_SKETCH_AGG.

Counters of (value, count) whose counts are never too high, and too low by at most `lost`: Apache's lower bound of a
value is its counter, the upper bound is `lost` above it. The items are strings of UTF-8 with their lengths, as
`datasketches.frequent_strings_sketch` and `ItemsSketch<String>` have them, or integers of 8 bytes, as
`datasketches.frequent_items_sketch` with `PyLongsSerDe`, `LongsSketch` and Spark's `approx_top_k_estimate` have them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.blobs import binaries, blobs, content
from windrow.kernels.jit import Ints

LG_MAP = 11
"""Readers put the counters into a hash table of 2**11 at most, which has room for three quarters of it."""
_FAMILY, _VERSION, _EMPTY, _LG_LEAST = 10, 1, 0b101, 3
_HEAD = 32


def sketches(kept: pa.Array, totals: Ints) -> pa.Array:
    """One sketch for each struct of `counters` and what they have `lost`, of totals[i] values."""
    lists, lost = kept.field("counters"), kept.field("lost").to_numpy()
    many = lists.value_lengths().to_numpy().astype(np.int64)
    pairs = lists.flatten()
    items, sizes = _items(pairs.field("value"))
    some = totals > 0
    sums = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.concatenate([[0], np.cumsum(many)])
    of_items = np.diff(sums[ends])
    offsets = np.concatenate([[0], np.cumsum(np.where(some, _HEAD + 8 * many + of_items, 8))])
    begin, data = offsets[:-1], np.zeros(int(offsets[-1]), np.uint8)
    data[begin], data[begin + 1], data[begin + 2] = np.where(some, 4, 1), _VERSION, _FAMILY
    data[begin + 3], data[begin + 4], data[begin + 5] = LG_MAP, _lg_table(many), np.where(some, 0, _EMPTY)
    at = begin[some][:, None]
    for place, numbers in ((8, many), (16, totals), (24, lost)):
        data[at + place + np.arange(8)] = _bytes(numbers[some])
    # All weights of a sketch, then all its items.
    weights = _bytes(pairs.field("count").to_numpy()).reshape(-1)
    data[_runs(begin + _HEAD, 8 * many)] = weights
    data[_runs(begin + _HEAD + 8 * many, of_items)] = items
    return blobs(binaries(offsets, data))


def _items(values: pa.Array) -> tuple[NDArray[np.uint8], Ints]:
    """The bytes of all items, and how many each has."""
    if not columns.is_text(values.type):
        return _bytes(values.cast(pa.int64()).to_numpy()).reshape(-1), np.full(len(values), 8)
    texts = values.cast(pa.large_string()).cast(pa.large_binary())
    sizes = np.diff(np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset))
    data = np.empty(int(sizes.sum()) + 4 * len(sizes), np.uint8)
    begin = np.cumsum(sizes + 4) - sizes - 4
    data[begin[:, None] + np.arange(4)] = sizes.astype("<u4").view(np.uint8).reshape(-1, 4)
    data[_runs(begin + 4, sizes)] = np.frombuffer(content(texts), np.uint8)
    return data, sizes + 4


def _bytes(numbers: Ints) -> NDArray[np.uint8]:
    """Eight for each number."""
    return np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)


def _runs(begin: Ints, sizes: Ints) -> Ints:
    """The places begin[i] .. begin[i] + sizes[i] - 1, run after run."""
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(begin - (np.cumsum(sizes) - sizes), sizes))


def _lg_table(many: Ints) -> Ints:
    """The least table of which so many counters fill at most three quarters."""
    least = np.arange(_LG_LEAST, LG_MAP)
    return np.asarray(_LG_LEAST + np.searchsorted(3 << least >> 2, many))
