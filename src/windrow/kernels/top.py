"""The smallest codes of each segment, without sorting it."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints, kernel


@kernel
def cut(codes: Ints, bounds: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Positions that are among the wanted[i] smallest codes of segment i, and those that tie for its last places.

    Positions are ascending within each result. `bounds` and `wanted` become those of the tied positions: where each
    segment lies among them, and how many of them it still wants. A segment that wants all it has leaves no ties.
    O(n log wanted) at worst, a little more than two reads of the codes when they come in random order.
    """
    # Pages that nothing is written to cost nothing, so both may be as long as the input.
    sure = np.empty(codes.size, np.int64)
    tied = np.empty(codes.size, np.int64)
    heap = np.empty(wanted.max() if wanted.size else 0, np.int64)
    sures = 0
    ties = 0
    start = bounds[0]
    for i in range(wanted.size):
        stop = bounds[i + 1]
        count = wanted[i]
        if count >= stop - start:
            for c in range(start, stop):
                sure[sures] = c
                sures += 1
            wanted[i] = 0
        elif count > 0:
            last = _nth_smallest(codes, start, stop, heap[:count])
            before = sures
            for c in range(start, stop):
                if codes[c] <= last:
                    if codes[c] < last:
                        sure[sures] = c
                        sures += 1
                    else:
                        tied[ties] = c
                        ties += 1
            wanted[i] = count - (sures - before)
        start = stop
        bounds[i + 1] = ties
    bounds[0] = 0
    return sure[:sures].copy(), tied[:ties].copy()


@kernel
def _nth_smallest(codes: Ints, start: int, stop: int, heap: Ints) -> np.int64:
    """The heap.size-th smallest of codes[start:stop]; the heap has the smallest so far, the greatest of them on top."""
    heap[:] = codes[start : start + heap.size]
    for i in range(heap.size // 2 - 1, -1, -1):
        _sift_down(heap, i, heap[i])
    for c in range(start + heap.size, stop):
        if codes[c] < heap[0]:
            _sift_down(heap, 0, codes[c])
    greatest: np.int64 = heap[0]
    return greatest


@kernel
def _sift_down(heap: Ints, at: int, code: np.int64) -> None:
    """Put `code` in place of heap[at], below everything greater."""
    child = 2 * at + 1
    while child < heap.size:
        if child + 1 < heap.size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= code:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = code
