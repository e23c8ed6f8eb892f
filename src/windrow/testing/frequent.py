"""FREQUENT by the book: thesis section 6.2, Algorithm 6, over the tuples of one window."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

_NAN = object()
"""All NaNs are one value, which equals no other, not even the text 'NaN'."""


def frequent(tuples: Iterable[tuple[int, Any]], k: int) -> list[tuple[Any, int]]:
    """The frequent values of (sub-window, value) pairs, with the counts that the top-k lists report.

    Each sub-window keeps the k values it saw most often; δ is the sum over sub-windows of the count of the kth (0
    where there are fewer than k). A value that is on no list occurs at most δ times, so one with more is frequent.

    >>> frequent([(0, "a"), (0, "a"), (0, "b"), (1, "a"), (1, "c"), (1, "c")], 2)  # δ = 1 + 1
    [('a', 3)]
    """
    panes: dict[int, Counter[Hashable]] = {}
    values: dict[Hashable, Any] = {}
    for pane, value in tuples:
        values.setdefault(_key(value), value)
        panes.setdefault(pane, Counter())[_key(value)] += 1
    delta = 0
    reported: Counter[Hashable] = Counter()
    for counts in panes.values():
        top = _ranked(counts, values)[:k]
        reported.update(dict(top))
        delta += top[k - 1][1] if len(top) == k else 0
    return [(values[key], count) for key, count in _ranked(reported, values) if count > delta]


def _ranked(counts: Counter[Hashable], values: dict[Hashable, Any]) -> list[tuple[Hashable, int]]:
    """Most frequent first; equally frequent ones by value, NaN last."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0] is _NAN, values[item[0]]))


def _key(value: Any) -> Hashable:
    if isinstance(value, float) and math.isnan(value):
        return _NAN
    hashable: Hashable = value
    return hashable
