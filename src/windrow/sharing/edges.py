"""Where the panes of a slice end: queries come and go, and with them the edges that rows to come are given.

    ts ──────────┬────────┬──────────────▶
      grid of 5  │ of 10  │ grid of 2           stretches, each with the edge behind which its panes begin

Only these edges may begin or end a window. Rows that come out of order get the newest grid wherever they are, so behind
the watermark of that moment, and up to where the new grid begins, only those edges hold that both grids have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windrow.windows.grid import Grid, Progression
from windrow.windows.spec import BEGINNING, MAX_TICK


class KnownEdges:
    """The grids in use one after the other."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, Grid]] = []

    # ---- grids change ---------------------------------------------------------------------------------------------

    def use(self, grid: Grid, since: int, needed: Iterable[Progression], complete: int | None) -> None:
        """Rows to come get the edges of this grid; all panes behind `since` have them.

        `needed` are those of the windows that stay, which the grid has, as the one before. Up to `complete` no row
        comes any more.
        """
        if not self._stretches:
            self._stretches.append((BEGINNING, grid))
        elif grid != (old := self._stretches[-1][1]):
            if not grid.covers(old.without_cuts(BEGINNING if complete is None else complete).progressions):
                self._claim(BEGINNING if complete is None else self.floor(complete), Grid.exactly(needed))
            self._claim(since, grid)

    def _claim(self, since: int, grid: Grid) -> None:
        """Behind `since` panes have the edges of this grid, whatever was known before."""
        while self._stretches and self._stretches[-1][0] >= since:
            del self._stretches[-1]
        if not self._stretches or self._stretches[-1][1] != grid:
            self._stretches.append((since, grid))

    def forget(self, edge: int) -> None:
        """Panes up to here are gone."""
        while len(self._stretches) > 1 and self._stretches[1][0] <= edge:
            del self._stretches[0]

    def without_cuts(self, upto: int) -> Grid:
        """The newest grid, from now on without its edges that stand alone up to here; no row comes before them."""
        since, grid = self._stretches[-1]
        self._stretches[-1] = (since, grid.without_cuts(upto))
        return self._stretches[-1][1]

    # ---- what is known --------------------------------------------------------------------------------------------

    def floor(self, ts: int) -> int:
        """The greatest edge at or before an instant."""
        start, grid = self._at(ts)
        return max(start, *(ts - (ts - phase) % step for step, phase in grid.progressions))

    def ceil(self, ts: int) -> int:
        """The smallest edge at or after an instant."""
        _, grid = self._at(ts)
        return min([grid.ceil(ts), *(start for start, _ in self._stretches if start >= ts)])

    def has(self, ts: int) -> bool:
        """Whether panes end at this instant, so that a window may begin or end there."""
        return self.floor(ts) == ts

    def _at(self, ts: int) -> tuple[int, Grid]:
        """The grid in use at an instant, and since when."""
        return next((one for one in reversed(self._stretches) if one[0] <= ts), self._stretches[0])

    def after(self, since: int) -> int:
        """The next edge at which every pane that exists there ends, so that no pane lies on both sides of it."""
        ends = [start for start, _ in self._stretches[1:]]
        for (_, grid), end in zip(self._stretches, [*ends, MAX_TICK], strict=True):
            if since < end:
                since = grid.ceil(since)
        return since

    def fit_since(self, progressions: Iterable[Progression]) -> int:
        """From where on all panes have these edges."""
        wanted, since = tuple(progressions), BEGINNING
        for start, grid in reversed(self._stretches):
            if not grid.covers(wanted):
                return since
            since = start
        return BEGINNING

    @property
    def regular_since(self) -> int:
        """From here on all panes have the edges of the newest grid."""
        return self._stretches[-1][0] if len(self._stretches) > 1 else BEGINNING

    # ---- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        """JSON-able."""
        return [[since, [list(one) for one in grid.progressions]] for since, grid in self._stretches]

    def restore(self, stretches: Iterable[Any]) -> None:
        """Become what `snapshot` gave."""
        self._stretches = [
            (since, Grid(tuple((step, phase) for step, phase in progressions))) for since, progressions in stretches
        ]
