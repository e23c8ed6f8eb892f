"""The hash of Apache DataSketches, so that its sketches and ours can be merged: MurmurHash3, x64, 128 bits, seed 9001.

A value is hashed by its 8 bytes or its UTF-8. HyperLogLog takes a coupon of it: 26 bits of address, from the first
half, and 6 bits of value (leading zeros of the second half, plus one). Theta sketches take 63 bits of the first half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import Ints, kernel

SEED = np.uint64(9001)
C1, C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
M1, M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
N1, N2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
ONE, FIVE, BYTE = np.uint64(1), np.uint64(5), np.uint64(8)
R27, R31, R33, R64 = np.uint64(27), np.uint64(31), np.uint64(33), np.uint64(64)
ADDRESS = np.uint64(0x3FFFFFF)


@kernel
def rotated(word: Any, bits: Any) -> Any:
    """The word with its bits moved left, around."""
    return (word << bits) | (word >> (R64 - bits))


@kernel
def mixed(word: Any) -> Any:
    """The finalisation of MurmurHash3."""
    word ^= word >> R33
    word *= M1
    word ^= word >> R33
    word *= M2
    return word ^ (word >> R33)


@kernel
def finished(h1: Any, h2: Any, size: Any) -> Any:
    """Both halves of the hash of so many bytes."""
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    h1 = mixed(h1)
    h2 = mixed(h2)
    h1 += h2
    h2 += h1
    return h1, h2


@kernel
def word_hash(word: int) -> Any:
    """Both halves of the hash of an 8-byte value."""
    k1 = rotated(np.uint64(word) * C1, R31) * C2
    return finished(SEED ^ k1, SEED, BYTE)


@kernel
def byte_hash(data: NDArray[np.uint8], at: int, end: int) -> Any:
    """Both halves of the hash of data[at:end]."""
    size = np.uint64(end - at)
    h1 = SEED
    h2 = SEED
    while at <= end:
        # 16 bytes at a time; the last block may be short or empty, and is not stirred like the others.
        k1 = np.uint64(0)
        k2 = np.uint64(0)
        for b in range(min(8, end - at)):
            k1 |= np.uint64(data[at + b]) << np.uint64(8 * b)
        for b in range(8, min(16, end - at)):
            k2 |= np.uint64(data[at + b]) << np.uint64(8 * b - 64)
        h1 ^= rotated(k1 * C1, R31) * C2
        if end - at >= 16:
            h1 = (rotated(h1, R27) + h2) * FIVE + N1
        h2 ^= rotated(k2 * C2, R33) * C1
        if end - at >= 16:
            h2 = (rotated(h2, R31) + h1) * FIVE + N2
        at += 16
    return finished(h1, h2, size)


@kernel
def coupon_of(h1: Any, h2: Any) -> int:
    """The coupon of a hash."""
    zeros = 0
    while zeros < 62 and h2 >> np.uint64(63 - zeros) == np.uint64(0):
        zeros += 1
    return int(((zeros + 1) << 26) | np.int64(h1 & ADDRESS))


@kernel
def word_coupons(words: Ints, coupons: Ints) -> None:
    """The coupon of each 8-byte value."""
    for i in range(words.size):
        h1, h2 = word_hash(words[i])
        coupons[i] = coupon_of(h1, h2)


@kernel
def byte_coupons(offsets: Ints, data: NDArray[np.uint8], coupons: Ints) -> None:
    """The coupon of each string data[offsets[i]:offsets[i+1]]."""
    for i in range(coupons.size):
        h1, h2 = byte_hash(data, offsets[i], offsets[i + 1])
        coupons[i] = coupon_of(h1, h2)


@kernel
def word_hashes(words: Ints, hashes: Ints) -> None:
    """63 bits of the hash of each 8-byte value."""
    for i in range(words.size):
        h1, _ = word_hash(words[i])
        hashes[i] = np.int64(h1 >> ONE)


@kernel
def byte_hashes(offsets: Ints, data: NDArray[np.uint8], hashes: Ints) -> None:
    """63 bits of the hash of each string data[offsets[i]:offsets[i+1]]."""
    for i in range(hashes.size):
        h1, _ = byte_hash(data, offsets[i], offsets[i + 1])
        hashes[i] = np.int64(h1 >> ONE)
