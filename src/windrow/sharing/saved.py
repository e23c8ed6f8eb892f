"""What sharing has saved a slice so far: counted as it happens, never estimated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Saved:
    """Counters since the slice was made here; they are no state: a restart begins with zeros."""

    shared_updates: int = 0
    """Updates of panes by a tuple that were done once for several queries (rule SS1)."""
    derived_updates: int = 0
    """Updates by a tuple that were not done at all, because partials came instead (rules SS4, GB)."""
    partials: int = 0
    """The partials that came instead."""
    lookups: int = 0
    """Lookups that were made together with others (rules CS1, CS2, CS3)."""

    def share(self, rows: int, queries: int) -> None:
        """So many rows came into panes that so many queries share."""
        self.shared_updates += rows * max(0, queries - 1)

    def derive(self, rows: int, entries: int, queries: int) -> None:
        """So many partials, which stand for so many rows, came into panes that so many queries share."""
        self.derived_updates += rows
        self.partials += entries
        self.share(rows, queries)
