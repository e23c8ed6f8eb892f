"""Several streams in one run: who is ahead in event time waits, so that what is kept for joining stays bounded.

packets  ───────────────▶ waits here
alerts   ─────▶ goes on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Condition
from time import monotonic

CHECK = 0.05
"""Seconds between two looks at the others."""


class Pace:
    """Lets the stream that is furthest behind go first; streams that have ended hold nobody back.

    `patience`: so many seconds a stream of a live run waits at most, and so long after its last batch a stream counts
    as idle, which holds nobody back either. None: a replay, in which everybody waits until the others have come.
    """

    def __init__(
        self,
        clocks: Mapping[str, object],
        watermark: Callable[[str], int | None],
        patience: float | None = None,
    ) -> None:
        # Only streams with the same clock (timestamps, or the same kind of ticks) can be compared.
        self._clocks = dict(clocks)
        self._watermark = watermark
        self._patience = patience
        self._going = set(clocks)
        self._seen = dict.fromkeys(clocks, monotonic())
        self._moved = Condition()
        self._free = False

    def wait(self, stream: str) -> None:
        """A batch has come: return when no comparable stream is behind this one, or when patience is over."""
        with self._moved:
            self._seen[stream] = monotonic()
            until = None if self._patience is None else monotonic() + self._patience
            while not self._free and self._behind(stream) and (until is None or monotonic() < until):
                self._moved.wait(CHECK)

    def _behind(self, stream: str) -> bool:
        mine = self._watermark(stream)
        return mine is not None and any(_is_behind(self._watermark(other), mine) for other in self._others(stream))

    def _others(self, stream: str) -> Iterable[str]:
        same = (one for one in self._going if one != stream and self._clocks[one] == self._clocks[stream])
        return [one for one in same if not self._idle(one)]

    def _idle(self, stream: str) -> bool:
        return self._patience is not None and monotonic() - self._seen[stream] > self._patience

    def moved(self, stream: str) -> None:
        """A stream has gone on."""
        with self._moved:
            self._seen[stream] = monotonic()
            self._moved.notify_all()

    def end(self, stream: str) -> None:
        """A stream has ended."""
        with self._moved:
            self._going.discard(stream)
            self._moved.notify_all()

    def release(self) -> None:
        """Nobody waits any more: the run is being stopped."""
        with self._moved:
            self._free = True
            self._moved.notify_all()


def _is_behind(other: int | None, mine: int) -> bool:
    return other is None or other < mine
