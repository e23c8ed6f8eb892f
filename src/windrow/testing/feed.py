"""A stream at rest: every accepted tuple in ROWS order, and which of them a window holds at an instant.

The plainest way, on purpose: a sorted table and, for each window, the list of the rows it holds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow, Window


@dataclass(frozen=True)
class Feed:
    """Tuples in ROWS order: by ts, then by the sequence column if there is one, then by the row's values."""

    table: pa.Table
    times: list[int]
    _partitions: dict[tuple[str, ...], list[tuple[str, ...]]] = field(default_factory=dict, repr=False, compare=False)

    def before(self, tau: int) -> int:
        """How many tuples have come up to and including τ."""
        return bisect_right(self.times, tau)

    def partitions(self, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Which partition each tuple belongs to, found once."""
        if columns not in self._partitions:
            # repr: NULL is a partition of its own, and so is NaN, which Python does not find equal to itself.
            rows = self.table.select(list(columns)).to_pylist()
            self._partitions[columns] = [tuple(repr(_unsigned_zero(value)) for value in row.values()) for row in rows]
        return self._partitions[columns]

    def take(self, positions: Sequence[int]) -> pa.Table:
        """The tuples at these positions."""
        if isinstance(positions, range):
            return self.table.slice(positions.start, len(positions))
        return self.table.take(pa.array(positions, pa.int64()))


def held(feed: Feed, window: Window, tau: int, *, ended: bool) -> Sequence[int]:
    """The positions of the tuples that `window` holds at τ.

    `ended` says that τ is the end of a bounded input: a ROWS … SLIDE window then takes the rest that fills no slide.

    >>> feed = Feed(pa.table({"a": [1, 2, 3, 4, 5]}), [1, 2, 3, 4, 5])
    >>> list(held(feed, RangeWindow(length=2), 4, ended=False))  # 4 - 2 < ts <= 4
    [2, 3]
    >>> list(held(feed, RowsWindow(count=2, slide=2), 5, ended=False))  # the fifth tuple waits for the sixth
    [2, 3]
    """
    if isinstance(window, NowWindow):
        return range(bisect_left(feed.times, tau), feed.before(tau))
    if isinstance(window, RangeWindow):
        start = window.start(tau)
        first = 0 if start is None else feed.before(start)
        return range(first, max(first, feed.before(window.end(tau))))
    arrived = slid(feed.before(tau), window, ended=ended)
    if not window.partition_by:
        newest = max(0, arrived - window.offset)
        return range(max(0, newest - window.count), newest)
    return _held_per_partition(feed, window, arrived)


def slid(count: int, window: RowsWindow, *, ended: bool) -> int:
    """How many of the first `count` tuples the window has slid over."""
    return count if window.slide is None or ended else window.slide * (count // window.slide)


def _unsigned_zero(value: object) -> object:
    """-0.0 is equal to 0.0, and in the same partition."""
    return value + 0.0 if isinstance(value, float) else value


def _held_per_partition(feed: Feed, window: RowsWindow, arrived: int) -> list[int]:
    keys = feed.partitions(window.partition_by)
    seen: dict[tuple[str, ...], int] = {}
    result = []
    for position in range(arrived - 1, -1, -1):
        newer = seen.get(keys[position], 0)
        seen[keys[position]] = newer + 1
        if window.offset <= newer < window.offset + window.count:
            result.append(position)
    return result[::-1]
