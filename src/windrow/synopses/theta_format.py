"""Theta sketches as bytes of Apache DataSketches: compact, ordered, serial version 3.

`theta_sketch_agg` of Spark gives such bytes; its `theta_union`, `theta_intersection`, `theta_difference` and
`theta_sketch_estimate` read them, and so does `datasketches.compact_theta_sketch.deserialize`. Everything is a number
of 8 bytes: a preamble, the number of hashes if it is not 0 or 1, θ if hashes are left out, and the hashes below θ.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.aggregates.blobs import binaries
from windrow.kernels.jit import Ints

MAX_THETA = (1 << 63) - 1
"""θ of a sketch that leaves nothing out."""
_VERSION, _FAMILY = 3, 3
_SEED_HASH = 0x93CC
"""16 bits by which Apache knows that both have hashed with seed 9001."""
_EMPTY, _READ_ONLY_COMPACT_ORDERED = 4, 2 | 8 | 16


def _preamble(longs: int, flags: int = 0) -> int:
    flags |= _READ_ONLY_COMPACT_ORDERED
    word = longs | _VERSION << 8 | _FAMILY << 16 | flags << 40 | _SEED_HASH << 48
    return word - (1 << 64)  # as a signed word: the highest bit of the seed's hash is set


_NOTHING, _ONE, _ALL, _SOME = _preamble(1, _EMPTY), _preamble(1), _preamble(2), _preamble(3)


def sketches(ends: Ints, hashes: Ints, nominal: int) -> pa.Array:
    """Sketch i is hashes[ends[i-1]:ends[i]], ascending; if they are more than `nominal`, the last of them is θ."""
    sizes = np.diff(ends, prepend=0)
    cut = sizes > nominal
    kept = sizes - cut
    longs = np.where(cut, 3, np.where(sizes > 1, 2, 1))
    offsets = np.concatenate([[0], np.cumsum(longs + kept)])
    begin = offsets[:-1]
    words = np.empty(int(offsets[-1]), np.int64)
    words[begin] = np.select([cut, sizes > 1, sizes == 1], [_SOME, _ALL, _ONE], _NOTHING)
    several = longs > 1
    words[begin[several] + 1] = kept[several]
    # θ is the last of the hashes here, and stands in front of them there.
    words[begin[cut] + 2] = hashes[ends[cut] - 1]
    below = np.ones(len(hashes), np.bool_)
    below[ends[cut] - 1] = False
    words[np.arange(int(kept.sum())) + np.repeat(begin + longs - (np.cumsum(kept) - kept), kept)] = hashes[below]
    return binaries(8 * offsets, words)


def to_bytes(hashes: Ints, nominal: int) -> bytes:
    """The sketch of ascending hashes; if they are more than `nominal`, the next one is θ."""
    hashes = np.asarray(hashes[: nominal + 1], np.int64)
    made: bytes = sketches(np.array([len(hashes)]), hashes, nominal)[0].as_py()
    return made


def from_bytes(data: bytes) -> tuple[Ints, int]:
    """The hashes of a compact sketch, ascending, and its θ; Spark packs them more tightly (serial version 4)."""
    if data[2] != _FAMILY:
        raise ValueError(f"expected a compact theta sketch (family {_FAMILY}), found family {data[2]}")
    import datasketches

    sketch = datasketches.compact_theta_sketch.deserialize(data)
    return np.sort(np.fromiter(sketch, np.int64, sketch.num_retained)), int(sketch.theta64)
