"""When a query is evaluated: its due times, or every instant at which a window can change."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.testing.feed import Feed, slid
from windrow.windows.spec import NowWindow, RangeWindow, RowsWindow, Window


def multiples(slide: int, first: int, last: int) -> list[int]:
    """The multiples of `slide` from the first one >= `first` up to `last`.

    >>> multiples(5, 3, 12)
    [5, 10]
    """
    return list(range(-(-first // slide) * slide, last + 1, slide))


def next_multiple(slide: int, instant: int) -> int:
    """The first multiple of `slide` at or after an instant."""
    return -(-instant // slide) * slide


def slide_instants(feed: Feed, window: RowsWindow) -> list[int]:
    """The timestamps at which a ROWS … SLIDE window moves: another slide is full.

    All tuples of one timestamp arrive at once, so one instant may bring several slides.
    """
    result = []
    moved = 0
    for time in sorted(set(feed.times)):
        now = slid(feed.before(time), window, ended=False)
        if now != moved:
            result.append(time)
        moved = now
    return result


def change_instants(feed: Feed, window: Window) -> Iterable[int]:
    """Every instant at which the window's contents can change: tuples come in and go out."""
    for time in set(feed.times):
        yield time
        if isinstance(window, NowWindow):
            yield time + 1
        elif isinstance(window, RangeWindow):
            yield time + window.offset
            if window.length is not None:
                yield time + window.offset + window.length
