"""How a share group keeps its partials: the contract of the dense and the sparse layout.

Both keep the row count as component 0, open panes by slot, and closed panes in order of their upper edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from windrow.aggregates import Component
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.within import keep_within
from windrow.synopses.chooser import Choice
from windrow.synopses.synopsis import ranges
from windrow.synopses.workload import Expected

Within: TypeAlias = tuple[Ints, Codes, Ints | None]
"""Offsets [windows + 1] and groups of each window, and the words of the component, if they were looked up for it."""


class Layout(ABC):
    """Partials of several components by pane and group; `slots` and `groups` are how many there are."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def edges(self) -> Ints:
        """The upper edges of closed panes."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""

    @abstractmethod
    def track(self, component: Component, synopsis: str | None) -> int:
        """Keep one more component; says its number."""

    @abstractmethod
    def track_rows(self, component: Component) -> int:
        """Keep one more count, which so far is the row count; says its number."""

    @abstractmethod
    def expect(self, number: int, expected: Expected) -> None:
        """These windows of a component will be looked up."""

    @abstractmethod
    def force(self, number: int, synopsis: str | None) -> None:
        """Keep a component in this synopsis from now on; None: the choice is free, as at the beginning."""

    @abstractmethod
    def reconsider(self) -> None:
        """Change what would be better otherwise, after what was seen; answers stay the same."""

    @abstractmethod
    def explain(self, number: int) -> Choice:
        """How a component is kept, and why."""

    @abstractmethod
    def keep(self, numbers: Sequence[int]) -> None:
        """Free all components but these, which are ascending and begin with 0; numbers[k] becomes k."""

    @abstractmethod
    def scatter(self, slots: Codes, gids: Codes | None, open_panes: int, groups: int) -> Codes:
        """Count rows, and give the cell of each row for `words`."""

    @abstractmethod
    def words(self, number: int) -> list[Ints]:
        """The flat accumulators of a component, by cell."""

    @abstractmethod
    def open_cells(self, open_panes: int, groups: int) -> tuple[Ints, Ints, Ints]:
        """Slot, gid and cell of every open cell that has rows."""

    @abstractmethod
    def close(self, edges: Ints, closing: Ints, staying: Ints) -> None:
        """Move open slots `closing` (in order of edge) to the closed panes; slot staying[k] becomes slot k."""

    @abstractmethod
    def expire(self, edge: int) -> int:
        """Forget closed panes with upper edge <= edge; says how many."""

    @abstractmethod
    def rows(self, open_panes: int, groups: int) -> Ints:
        """Zero for a group that is in no pane, open or closed."""

    @abstractmethod
    def select(self, live: Ints, open_panes: int) -> None:
        """Keep these groups only, renumbered in this order."""

    @abstractmethod
    def present(self, first: Ints, last: Ints, groups: int) -> tuple[Ints, Codes]:
        """Offsets [windows + 1], and the groups of each window, ascending; these may be left out if all have all."""

    def within(self, number: int, first: Ints, last: Ints, groups: int, low: Ints, high: Ints) -> Within:
        """As `present`, but only groups whose component is in low … high: a count, a sum or extreme of integers."""
        offsets, present = self.present(first, last, groups)
        if len(present) < offsets[-1]:
            present = np.tile(np.arange(groups, dtype=np.int32), len(first))
        return self.checked(number, first, last, groups, low, high, offsets, present)

    def checked(
        self,
        number: int,
        first: Ints,
        last: Ints,
        groups: int,
        low: Ints,
        high: Ints,
        offsets: Ints,
        present: Codes,
    ) -> Within:
        """Of these candidates, those whose component is in low … high."""
        words = self.answer(number, first, last, groups, offsets, present)
        kept, left = np.empty(len(present), np.bool_), np.empty_like(offsets)
        keep_within(words, offsets, low, high, kept, left)
        return left, present[kept], words[:, kept]

    @abstractmethod
    def answer(self, number: int, first: Ints, last: Ints, groups: int, offsets: Ints, present: Codes) -> Ints:
        """The words [words, rows] of a component for the groups present in each window."""

    @abstractmethod
    def stored(self, number: int) -> list[Ints]:
        """The arrays that hold the words of a component, to be changed in place; unused places hold anything."""

    @abstractmethod
    def snapshot(self, open_panes: int, groups: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """A JSON-able dict, and named arrays."""

    @abstractmethod
    def restore(
        self, meta: dict[str, Any], arrays: dict[str, Any], components: Sequence[Component], open_panes: int
    ) -> None:
        """Become what `snapshot` wrote."""

    def range_of(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The panes first..last-1 of each window (start, end]: those with start < edge <= end."""
        return ranges(self.edges, starts, ends)
