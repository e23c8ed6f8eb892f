"""What sharing has saved a slice so far: counted as it happens, never estimated."""

from __future__ import annotations

from dataclasses import dataclass, field


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


@dataclass
class Probed:
    """Questions that were answered from the slices of others (rules SS4, GB, CS6, CS7), since the engine was made."""

    questions: int = 0
    lookups: int = 0
    """Windows that were looked up for them, one per source."""
    panes: int = 0
    """Panes that a slice of its own would have for the windows; it was not made."""
    updates: int = 0
    """Updates of these panes by a tuple; of united slices as many as the greatest of them had."""
    owners: dict[str, None] = field(default_factory=dict)
    """The queries whose slices they were."""

    def add(self, other: Probed) -> None:
        """What another question has saved."""
        self.questions += other.questions
        self.lookups += other.lookups
        self.panes += other.panes
        self.updates += other.updates
