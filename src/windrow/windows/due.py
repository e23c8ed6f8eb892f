"""Due times: at which instants a periodic query is answered. They are the multiples of its SLIDE."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def first_due(ts: int, slide: int) -> int:
    """The first due time at or after an instant.

    >>> first_due(7, 5), first_due(10, 5), first_due(-3, 5)
    (10, 10, 0)
    """
    return -(-ts // slide) * slide


def last_due(ts: int, slide: int) -> int:
    """The last due time at or before an instant."""
    return ts // slide * slide


def due_times(first: int, until: int, slide: int) -> Ints:
    """All due times from `first` (itself one) to `until`."""
    count = max(0, (until - first) // slide + 1)
    return first + slide * np.arange(count, dtype=np.int64)


def due_times_with_panes(first: int, until: int, slide: int, edges: Ints, reach: int, offset: int) -> Ints:
    """The due times from `first` to `until` whose window (τ-reach, τ-offset] holds a pane; `edges` are ascending.

    A silence of a year costs nothing: only the neighbourhoods of panes are enumerated.
    """
    if not len(edges):
        return np.empty(0, np.int64)
    # A pane that ends at e is in the windows with e+offset <= τ < e+reach.
    begin = np.maximum(-(-(edges + offset) // slide), first // slide)
    end = np.minimum((edges + reach - 1) // slide, until // slide)
    # Panes are ascending, so the stretches overlap only with their predecessors.
    begin = np.maximum(begin, np.concatenate([[begin[0]], np.maximum.accumulate(end)[:-1] + 1]))
    lengths = np.maximum(end - begin + 1, 0)
    total = int(lengths.sum())
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    taus: Ints = (np.repeat(begin, lengths) + within) * slide
    return taus
