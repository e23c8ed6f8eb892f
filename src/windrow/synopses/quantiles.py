"""B-INT-QNT alone (002, section 3.3): any quantile of any interval of the last tuples of one stream of numbers.

Each tuple is a pane of its own. Update O(log N) amortised, lookup O(log² W · log log W) for an interval of W tuples,
any φ, several φ at once; space O(N log N), where N is how many tuples are kept.

The engine uses the same runs, by pane and group, inside `Frequencies`: see `frequency_index`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow.aggregates.extremes import ordered, unordered
from windrow.kernels.jit import Floats, Ints
from windrow.synopses.sorted_runs import SortedRuns


class Quantiles:
    """The last `most` tuples of a stream.

    >>> kept = Quantiles(most=4)
    >>> kept.update(np.array([5.0, 1.0, 4.0, 2.0, 3.0]))
    >>> kept.lookup(np.array([1, 3]), np.array([5, 5]), (0.5, 1.0))
    array([[2., 2.],
           [4., 3.]])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._runs = SortedRuns(weights=0, grouped=False)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._runs.nbytes

    def update(self, values: Floats) -> None:
        """The next tuples; what falls out of the last `most` is forgotten."""
        ones = np.ones(len(values), np.int64)
        self._runs.append(ones, None, ordered(values), np.empty((0, len(values)), np.int64))
        self._runs.expire(max(0, self._runs.panes - self._most))

    def lookup(self, first: Ints, last: Ints, fractions: Sequence[float]) -> Floats:
        """Element ⌊φW⌋ (at least the first) of the tuples first[i] .. last[i]-1 in order: an array [φ, intervals].

        Tuples are counted from 0, from the beginning of the stream; those asked for must still be kept.
        """
        if len(first) and (int(first.min()) < self._runs.first or int(last.max()) > self._runs.end):
            raise ValueError(
                f"tuples {first.min()} .. {last.max() - 1} were asked for, but only {self._runs.first} .. "
                f"{self._runs.end - 1} are kept; keep more of them"
            )
        positions = np.maximum(1, np.floor(np.multiply.outer(fractions, last - first)).astype(np.int64))
        everyone: NDArray[np.int32] = np.zeros(len(first), np.int32)
        return unordered(self._runs.select(first, last, np.arange(len(first) + 1), everyone, positions))
