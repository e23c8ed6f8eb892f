"""The watermark of one stream: up to where it is complete (design section 1, due times)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Watermark:
    """Everything at or before `value` has arrived; `lateness` is how far behind the newest a tuple may come."""

    lateness: int = 0
    value: int | None = None
    oldest: int | None = None
    newest: int | None = None

    def observe(self, oldest: int, newest: int) -> None:
        """A batch arrived; ties at the newest timestamp may still come, so the watermark stays one tick behind it."""
        self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)
        self.newest = newest if self.newest is None else max(self.newest, newest)
        self.advance(self.newest - self.lateness - 1)

    def advance(self, to: int) -> None:
        """A heartbeat: everything up to `to` is complete; the watermark never goes back."""
        self.value = to if self.value is None else max(self.value, to)
