"""What a rule is: a name, the section it comes from, a condition, its effect, and what that saves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from windrow.sharing.rules.described import Described, Kept


class Rule(ABC):
    """One rule; a class without state, so that a registry of them is data."""

    name: ClassVar[str]
    section: ClassVar[str]
    effect: ClassVar[str]
    saves: ClassVar[str]


class StateRule(Rule):
    """Which synopses a query may use instead of one of its own."""

    @abstractmethod
    def allows(self, synopses: Sequence[Kept], query: Described) -> bool:
        """Whether the query can be answered from these synopses, all of them."""


class ComputationRule(Rule):
    """Which queries may be executed together, given the synopses that they share."""

    @abstractmethod
    def allows(self, synopses: Sequence[Kept], queries: Sequence[Described]) -> bool:
        """Whether these queries, whose state is shared, are cheaper together when they are due at the same time."""


def same_rows(synopsis: Kept, query: Described) -> bool:
    """Whether a synopsis is about the rows and groups of a query."""
    same = synopsis.streams == query.streams and synopsis.keys == query.keys
    return same and synopsis.predicate.same(query.predicate)


def same_windows(queries: Sequence[Described]) -> bool:
    """Whether all look at windows of the same lengths."""
    return len({query.windows for query in queries}) <= 1
