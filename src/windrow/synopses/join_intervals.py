"""Synopses over the results of a join of two windows: intervals by the time at which a result expires (thesis 8.3.2).

A result of a (b·s, b·s)-join expires with the older of its two tuples, so results do not leave in the order in which
they came. At an update at time t the intervals are (t, t+s], …, (t+(b-1)s, t+b·s], oldest first; new results may fall
into every one of them. The results of an (n·s, n·s)-join are those in the n youngest intervals.

                t       t+s      t+2s            t+7s     t+8s
    at t        │ f(oldest)│       │      …        │ youngest │
    at t+s                 │ +new  │     +new      │   +new   │ new │     the oldest is dropped, all others are updated

An (n1·s, n2·s)-join, n1 < n2, lacks the results whose first tuple is older than n1·s. They are in the b-n1 oldest
intervals. A *generalized* synopsis therefore keeps, for each interval, what is without the results whose first (or
second) tuple is less than 1, 2, …, g slots younger than the result's older tuple: then all n1, n2 between b-g and b are
answered. The thesis draws one such value per side in the g oldest intervals (Figure 8.4), which tells (b-1, b) from
(b, b); for a greater g, and because every interval grows old, g values per side and interval are kept here.

| synopsis | components | update | lookup | space |
|---|---|---|---|---|
| BIJ | all | b | n; all windows in one scan of b | b (1 + 2g) |
| IJ | all | 2b | 2 log b + g | 2b + 2gb |
| RJ | subtractable | b | 2 + g | b (1 + 2g) |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from windrow.aggregates import Component
from windrow.aggregates.component import Subtractable
from windrow.kernels.jit import Ints


class JoinSynopsis(ABC):
    """The partials of one component for the results of one join, by expiration; `groups` of them at once.

    Words are [words, groups]. `updated` counts the intervals that updates have changed, `accessed` those that lookups
    have read.
    """

    name: ClassVar[str]

    def __init__(self, component: Component, s: int, b: int, g: int = 0, groups: int = 1) -> None:
        if s < 1 or b < 1 or not 0 <= g < b:
            raise ValueError(f"expected s >= 1, b >= 1 and 0 <= g < b, found s = {s}, b = {b}, g = {g}")
        self.component, self.s, self.b, self.g, self.groups = component, s, b, g, groups
        self.time = 0
        """The last update, in slots: at time · s."""
        self.updated = self.accessed = 0
        # By slot of expiration modulo b, and for each side how far the tuple must be from the older one.
        self._without = self._blank(2 * g * b)

    @property
    def intervals(self) -> list[tuple[int, int]]:
        """The expiration times (from, to] of each interval, oldest first."""
        return [((self.time + k) * self.s, (self.time + k + 1) * self.s) for k in range(self.b)]

    @property
    def kept(self) -> int:
        """How many partials are kept per group."""
        return self._whole_intervals + 2 * self.g * self.b

    def update(self, left: Ints, right: Ints, gids: Ints | None = None, values: NDArray[Any] | None = None) -> None:
        """Move on by s, and take in the results that have come since, given the timestamps of both their tuples.

        The younger tuple of each is in the new slot, the older one not older than the windows are long.
        """
        self.time += 1
        first, second = -(-np.asarray(left) // self.s), -(-np.asarray(right) // self.s)
        older, younger = np.minimum(first, second), np.maximum(first, second)
        if len(older) and (younger.min() != self.time or younger.max() != self.time or older.min() <= self._oldest):
            raise ValueError(
                f"expected results whose younger tuple is in slot {self.time} and whose older one is after slot "
                f"{self._oldest}, found slots {older.min()} … {younger.max()}"
            )
        gids = np.zeros(len(older), np.int64) if gids is None else np.asarray(gids, np.int64)
        expires = older + self.b
        self._drop()
        self._take(expires, gids, values)
        place = expires % self.b
        self._clear(self._without, [self._flagged(side, self.time, d) for side in (0, 1) for d in range(self.g)])
        for side, slots in enumerate((first, second)):
            for d in range(self.g):
                far = slots > older + d
                cells = (side * self.g + d) * self.b + place[far]
                self._accumulate(self._without, cells, gids[far], None if values is None else values[far])

    @property
    def _oldest(self) -> int:
        """Tuples of this slot, and of older ones, have expired."""
        return self.time - self.b

    def lookup(self, n1: int, n2: int) -> Ints:
        """The partials of the (n1·s, n2·s)-join at the last update."""
        self._check(n1, n2)
        words = self._youngest(min(n1, n2))
        for part in self._in_between(n1, n2):
            self.component.combine(words, part)
        return words

    def _check(self, n1: int, n2: int) -> None:
        """SS3: windows of one length, or of two that are both among the longest."""
        fits = min(n1, n2) >= 1 and max(n1, n2) <= self.b
        if not fits or (n1 != n2 and min(n1, n2) < self.b - self.g):
            raise ValueError(
                f"a ({n1}s, {n2}s)-join is not in a synopsis with b = {self.b} and g = {self.g}: expected two equal "
                f"windows of at most {self.b}s, or both between {self.b - self.g}s and {self.b}s"
            )

    def _in_between(self, n1: int, n2: int) -> Iterator[Ints]:
        """What the longer window has more: results of old intervals whose tuple of the shorter one is young enough."""
        side = 0 if n1 < n2 else 1
        border = self.time - min(n1, n2)
        for older in range(self.time - max(n1, n2) + 1, border + 1):
            self.accessed += 1
            place = self._flagged(side, older + self.b, border - older)
            yield np.ascontiguousarray(self._without[:, place])

    def _flagged(self, side: int, expires: int, distance: int) -> int:
        return (side * self.g + distance) * self.b + expires % self.b

    def _blank(self, cells: int) -> Ints:
        return np.repeat(self.component.identity[:, None, None], cells, axis=1).repeat(self.groups, axis=2)

    def _clear(self, words: Ints, places: Sequence[int]) -> None:
        words[:, list(places)] = self.component.identity[:, None, None]

    def _accumulate(self, words: Ints, cells: Ints, gids: Ints, values: NDArray[Any] | None) -> None:
        flat = (cells * self.groups + gids).astype(np.int32)
        self.component.accumulate([word.reshape(-1) for word in words], flat, flat if values is None else values)

    @property
    @abstractmethod
    def _whole_intervals(self) -> int:
        """How many intervals are kept, those without flagged results not counted."""

    @abstractmethod
    def _drop(self) -> None:
        """Forget the results that expire at the new time, and make room for the youngest interval."""

    @abstractmethod
    def _take(self, expires: Ints, gids: Ints, values: NDArray[Any] | None) -> None:
        """New results, by their slot of expiration."""

    @abstractmethod
    def _youngest(self, n: int) -> Ints:
        """The partials of the n youngest intervals."""


class BasicIntervalJoin(JoinSynopsis):
    """BIJ: one partial per interval; every window is found in one scan from the youngest interval on."""

    name = "bij"

    def __init__(self, component: Component, s: int, b: int, g: int = 0, groups: int = 1) -> None:
        super().__init__(component, s, b, g, groups)
        self._words = self._blank(b)

    @property
    def _whole_intervals(self) -> int:
        return self.b

    def _drop(self) -> None:
        self._clear(self._words, [self.time % self.b])
        self.updated += self.b

    def _take(self, expires: Ints, gids: Ints, values: NDArray[Any] | None) -> None:
        self._accumulate(self._words, expires % self.b, gids, values)

    def _youngest(self, n: int) -> Ints:
        return next(words for length, words in self._scan() if length == n)

    def _scan(self) -> Iterator[tuple[int, Ints]]:
        """The partials of the 1, 2, …, b youngest intervals."""
        words = self._blank(1)[:, 0].copy()
        for n in range(1, self.b + 1):
            self.accessed += 1
            place = (self.time + self.b - n + 1) % self.b
            self.component.combine(words, np.ascontiguousarray(self._words[:, place]))
            yield n, words.copy()

    def lookup_all(self, windows: Sequence[tuple[int, int]]) -> list[Ints]:
        """All these joins in one scan (CS5): each interval is read once, whatever the number of queries."""
        for n1, n2 in windows:
            self._check(n1, n2)
        wanted = {min(pair) for pair in windows}
        found: dict[int, Ints] = {}
        for n, words in self._scan():
            if n in wanted:
                found[n] = words
            if n == max(wanted):
                break
        answers = []
        for n1, n2 in windows:
            words = found[min(n1, n2)].copy()
            for part in self._in_between(n1, n2):
                self.component.combine(words, part)
            answers.append(words)
        return answers


class RunningJoin(JoinSynopsis):
    """RJ: the partials of all results up to each border, so that two of them answer a window of any length."""

    name = "rj"

    def __init__(self, component: Component, s: int, b: int, g: int = 0, groups: int = 1) -> None:
        if not isinstance(component, Subtractable):
            raise ValueError(f"{component.name} cannot be subtracted, which a running synopsis over a join needs")
        super().__init__(component, s, b, g, groups)
        self._subtractable = component
        self._words = self._blank(b + 1)  # of results that expire up to time, time + 1, …, time + b

    @property
    def _whole_intervals(self) -> int:
        return self.b + 1

    def _drop(self) -> None:
        self._words = np.concatenate([self._words[:, 1:], self._words[:, -1:]], axis=1)
        self.updated += self.b

    def _take(self, expires: Ints, gids: Ints, values: NDArray[Any] | None) -> None:
        fresh = self._blank(self.b + 1)
        self._accumulate(fresh, expires - self.time, gids, values)
        self._words += np.cumsum(fresh, axis=1)

    def _youngest(self, n: int) -> Ints:
        self.accessed += 2
        whole, old = (np.ascontiguousarray(self._words[:, place]) for place in (self.b, self.b - n))
        return self._subtractable.subtract(whole, old)


class IntervalJoin(JoinSynopsis):
    """IJ: partials of 1, 2, 4, … intervals, aligned, so that about 2 log b of them answer a window."""

    name = "ij"

    def __init__(self, component: Component, s: int, b: int, g: int = 0, groups: int = 1) -> None:
        super().__init__(component, s, b, g, groups)
        self._levels = []
        for level in range(b.bit_length()):
            self._levels.append(self._blank(self._size(level)))

    def _size(self, level: int) -> int:
        """Aligned intervals of length 2^level that b slots can touch."""
        return (self.b - 1) // (1 << level) + 2 if level else self.b

    @property
    def _whole_intervals(self) -> int:
        return sum(words.shape[1] for words in self._levels)

    def _drop(self) -> None:
        for level, words in enumerate(self._levels):
            # The youngest slot that can expire now may begin an interval, which takes the place of an old one.
            youngest = self.time + self.b
            if youngest % (1 << level) == 0 or self.time == 1:
                self._clear(words, [(youngest >> level) % words.shape[1]])
        self.updated += self._whole_intervals

    def _take(self, expires: Ints, gids: Ints, values: NDArray[Any] | None) -> None:
        for level, words in enumerate(self._levels):
            self._accumulate(words, (expires >> level) % words.shape[1], gids, values)

    def _youngest(self, n: int) -> Ints:
        words = self._blank(1)[:, 0].copy()
        first, last = self.time + self.b - n + 1, self.time + self.b + 1
        level = 0
        while first < last:  # slots first … last-1 of this level
            stored = self._levels[level]
            grown = level + 1 < len(self._levels)
            if first & 1 or not grown:
                self._combine(words, stored, first)
                first += 1
            if last & 1 and first < last and grown:
                last -= 1
                self._combine(words, stored, last)
            if grown:
                first, last, level = first >> 1, last >> 1, level + 1
        return words

    def _combine(self, words: Ints, stored: Ints, slot: int) -> None:
        self.accessed += 1
        self.component.combine(words, np.ascontiguousarray(stored[:, slot % stored.shape[1]]))
