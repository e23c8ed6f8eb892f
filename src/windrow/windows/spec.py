"""Window specifications: frozen, validated, in ticks of the stream's time column (thesis 2.1.1, 3.3.2).

A time window is left-open and right-closed: at instant τ `[RANGE T OFFSET d]` holds the tuples with
τ-d-T < ts <= τ-d, so a tuple expires at ts+d+T.

    ts   ──┬────(────────────────]──────────┬──▶
          τ-d-T                τ-d          τ
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

MAX_TICK = (1 << 63) - 1
"""The instant that never comes: the expiry of a tuple in an unbounded window."""
BEGINNING = -(1 << 63)
"""Before every timestamp: of a query that has seen its stream from the start."""
FARTHEST_TICK = 1 << 61
"""Of data: leaves room for RANGE, OFFSET and SLIDE, which are at most as long, in 64 bits."""


@dataclass(frozen=True)
class RangeWindow:
    """`[RANGE length SLIDE slide OFFSET offset]`; length None is UNBOUNDED, slide None is continuous."""

    length: int | None = None
    slide: int | None = None
    offset: int = 0
    internal: bool = False

    def start(self, tau: int) -> int | None:
        """The open left edge at τ, None when unbounded."""
        return None if self.length is None else tau - self.offset - self.length

    def end(self, tau: int) -> int:
        """The closed right edge at τ."""
        return tau - self.offset

    @property
    def reach(self) -> int | None:
        """How far behind τ the window looks: everything older can be forgotten."""
        return None if self.length is None else self.length + self.offset


@dataclass(frozen=True)
class RowsWindow:
    """`[PARTITION BY keys ROWS count SLIDE slide OFFSET offset]`, all three counted in tuples."""

    count: int
    slide: int | None = None
    offset: int = 0
    partition_by: tuple[str, ...] = ()
    internal: bool = False


@dataclass(frozen=True)
class NowWindow:
    """`[NOW]`: the tuples with ts = τ."""

    internal: bool = False
    slide: int | None = None


Window: TypeAlias = RangeWindow | RowsWindow | NowWindow
