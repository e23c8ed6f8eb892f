"""A heap of deadlines (thesis 8.5.1).

Deadlines are absolute update numbers, so the update that brings all of them nearer costs nothing. Entries that were
replaced or removed stay in the heap until they come to its top (lazy deletion), or until they are the greater part of
it. Cost: set and remove O(log n) amortised, lowest O(1) amortised; space O(n).
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_FEW = 64
"""So few dead entries are never worth a clean-up."""


class Deadlines(Generic[Key]):
    """Keys by deadline; among equal ones the highest priority first, then the one that waits longest.

    >>> heap = Deadlines()
    >>> heap.set("a", 7); heap.set("b", 5); heap.set("c", 5, priority=1); heap.set("a", 9)
    >>> heap.lowest()
    (5, 1, 'c')
    >>> heap.take(8), len(heap)
    (['c', 'b'], 1)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Key]] = []
        self._live: dict[Key, tuple[int, int, int, Key]] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: Key) -> bool:
        return key in self._live

    def set(self, key: Key, deadline: int, priority: int = 0) -> None:
        """Give a key its deadline; an earlier one of the same key is forgotten."""
        self._turn += 1
        entry = (deadline, -priority, self._turn, key)
        self._live[key] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._live) + _FEW:
            self._heap = list(self._live.values())
            heapify(self._heap)

    def remove(self, key: Key) -> None:
        """Forget a key, if it is there."""
        self._live.pop(key, None)

    def lowest(self) -> tuple[int, int, Key] | None:
        """Deadline, priority and key that come first; None when there is none."""
        heap, live = self._heap, self._live
        while heap:
            entry = heap[0]
            if live.get(entry[3]) is entry:
                return entry[0], -entry[1], entry[3]
            heappop(heap)
        return None

    def take(self, reach: int) -> list[Key]:
        """Take out all keys with a deadline up to `reach`, in order."""
        heap, live = self._heap, self._live
        taken: list[Key] = []
        while heap and heap[0][0] <= reach:
            entry = heappop(heap)
            key = entry[3]
            if live.get(key) is entry:
                taken.append(key)
                del live[key]
        return taken

    def before(self, deadline: int) -> list[Key]:
        """The keys with a smaller deadline, which stay: O(n)."""
        return [key for key, entry in self._live.items() if entry[0] < deadline]
