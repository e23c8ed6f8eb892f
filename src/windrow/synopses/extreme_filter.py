"""Substream filters for MAX and MIN (002 section 4): which keys have a maximum above v in the last T time units?

MAX > v exactly if the last element above v is in the window. The thresholds of the registered queries are known, so
each is a level that keeps, per key, the timestamp of the last element above it; one more level keeps the last element
of all. Lookups are exact. MIN is MAX of the values with all bits flipped, which turns their order around.

Update: one timestamp per threshold below the value, each one comparison, rarely O(log keys). Lookup: O(keys found ·
log₈ keys) for `beyond`. Space: O(keys · thresholds).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels import substream
from windrow.kernels.jit import Ints, frozen
from windrow.synopses.substream_index import Candidates, SubstreamIndex


class ExtremeFilter(SubstreamIndex):
    """MAX(value) > v and < v, or MIN(value) < v and > v with `least`, for integer thresholds known from the start.

    >>> peaks = ExtremeFilter([100])
    >>> peaks.update([0, 1, 1], [10, 11, 15], [70, 200, 90])
    >>> peaks.beyond([10], [100]).keys  # a maximum above 100 after 10
    array([1], dtype=int32)
    """

    def __init__(self, thresholds: Any, least: bool = False, keys: int = 0) -> None:
        self._least = least
        self.thresholds: Ints = np.unique(np.asarray(thresholds, np.int64))
        """Those that may be asked for, ascending."""
        given = self._turned(self.thresholds)
        # Not reaching v is: not above v - 1.
        self._bounds: Ints = np.unique(np.concatenate([given, given - 1]))
        super().__init__(len(self._bounds) + 1, keys)

    def update(self, keys: Any, timestamps: Any, values: Any) -> None:
        """Elements, those of one key in the order of time."""
        keys, ticks = np.asarray(keys, np.int32), np.asarray(timestamps, np.int64)
        self._grow_for(keys)
        signed = self._turned(values)
        bad = substream.raise_all(
            self.newest, self.oldest, self.starts, self._bounds, frozen(keys), frozen(ticks), frozen(signed)
        )
        if bad >= 0:
            raise ValueError(
                f"elements of a key come in the order of time: key {keys[bad]} at {ticks[bad]} came after "
                f"{self.newest[0, keys[bad]]}; the elements before it were taken in"
            )

    def beyond(self, starts: Any, thresholds: Any) -> Candidates:
        """Per window (start, now]: the keys with MAX > threshold (MIN < threshold); all are sure."""
        levels = self._levels(self._turned(thresholds))
        return self.find(np.asarray(starts, np.int64), levels, levels, False)

    def within(self, starts: Any, thresholds: Any) -> Candidates:
        """Per window (start, now]: the keys with MAX < threshold (MIN > threshold) and some element; all are sure."""
        levels = self._levels(self._turned(thresholds) - 1)
        return self.find(np.asarray(starts, np.int64), levels, levels, True)

    def knows(self, thresholds: Any) -> bool:
        """Whether the filter was built with all of these thresholds."""
        return bool(np.isin(thresholds, self.thresholds).all())

    def _turned(self, values: Any) -> Ints:
        """Unlike a negation this has a place for the smallest integer."""
        given = np.asarray(values, np.int64)
        return ~given if self._least else given

    def _levels(self, bounds: Ints) -> Ints:
        places = np.searchsorted(self._bounds, bounds)
        known = places < len(self._bounds)
        if not known.all() or (self._bounds[places] != bounds).any():
            raise ValueError("a threshold was asked for that the filter was not built with")
        return np.asarray(places + 1, np.int64)
