"""Bags of rows, as codes: equal rows have equal codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.jit import Codes


def beyond(ours: Codes, theirs: Codes) -> Any:
    """Which of our rows are left when each of theirs takes one of its equals away, the first ones first.

    >>> beyond(np.array([1, 2, 1, 1]), np.array([1, 3])).tolist()
    [False, True, True, True]
    """
    if not len(ours):
        return np.ones(0, np.bool_)
    highest = max(int(ours.max()), int(theirs.max()) if len(theirs) else 0)
    counts = np.bincount(theirs, minlength=highest + 1)
    order = np.argsort(ours, kind="stable")
    ranked = ours[order]
    starts = np.searchsorted(ranked, ranked)
    kept = np.empty(len(ours), np.bool_)
    kept[order] = np.arange(len(ours)) - starts >= counts[ranked]
    return kept
