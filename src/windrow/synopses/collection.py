"""The contract of collections: what is kept of a value column beyond a few words per pane and group.

A collection follows its share group: rows come into open panes (by slot), panes close in order of their edges and
expire in that order, groups are renumbered. A value is never NULL here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from windrow.aggregates.collected import Question, Store
from windrow.kernels.jit import Codes, Ints


@dataclass(frozen=True)
class Windows:
    """The windows of one lookup, and the groups that have rows in each."""

    first: Ints
    last: Ints
    """Window i is the closed panes first[i]..last[i]-1."""
    offsets: Ints
    """Its answer rows are offsets[i]..offsets[i+1]-1."""
    present: Codes
    """The group of each answer row, ascending in a window."""
    groups: int
    edges: Ints
    """The upper edges of all closed panes."""


class Collection(ABC):
    """Multisets or sketches of the values of one column, by pane and group."""

    name: ClassVar[str]

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    def reason(cls, ask: Question) -> str:
        """Why a question is answered from this collection, for EXPLAIN."""
        return "no fixed number of words is enough: what is needed of the values is kept per pane"

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""

    # -- open panes -----------------------------------------------------------------------------------------------

    @abstractmethod
    def insert(self, slots: Codes, gids: Codes, values: pa.Array) -> None:
        """One value per row, into the open pane `slots[i]` of group `gids[i]`; arrays must be copied to be kept."""

    @abstractmethod
    def partials(self, slots: Ints, gids: Ints) -> pa.Array:
        """What the open cells (slots[i], gids[i]) hold, one entry each, for `absorb` elsewhere; NULL for nothing."""

    @abstractmethod
    def absorb(self, slots: Codes, gids: Codes, partials: pa.Array) -> None:
        """Add what another collection gave as `partials`, entry by entry."""

    # -- time passes ----------------------------------------------------------------------------------------------

    @abstractmethod
    def close(self, closing: Ints, staying: Ints) -> None:
        """Open slots `closing` become the next closed panes, in this order; slot staying[k] becomes slot k."""

    @abstractmethod
    def expire(self, panes: int) -> None:
        """Forget the first so many closed panes."""

    @abstractmethod
    def select(self, live: Ints) -> None:
        """Group live[k] becomes k; the others have no cells."""

    @abstractmethod
    def fill(self, panes: int) -> None:
        """So many closed panes that hold nothing: those from before the collection."""

    # -- answers --------------------------------------------------------------------------------------------------

    @abstractmethod
    def lookup(self, windows: Windows, ask: Question) -> pa.Array:
        """One answer of the question's type per row of the windows, in their order."""

    # -- snapshots ------------------------------------------------------------------------------------------------

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Named arrays for `snapshot.pack`, NumPy or Arrow."""

    @abstractmethod
    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
