"""What a share group is asked to keep: a component of an aggregate, on a value column."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.aggregates import Component
from windrow.aggregates.collected import Collected, Store
from windrow.aggregates.count import Count
from windrow.aggregates.extremes import MaxText, MinText


@dataclass(frozen=True)
class ComponentSpec:
    """A component on a value column (None for the row count), in a synopsis of the given type (None: the best)."""

    component: Component
    column: int | None = None
    synopsis: str | None = None

    @property
    def is_row_count(self) -> bool:
        """Whether the row count will do, as long as no value is NULL."""
        return isinstance(self.component, Count) and self.synopsis is None

    @property
    def is_text(self) -> bool:
        """Whether its words are labels of strings."""
        return isinstance(self.component, MinText | MaxText)

    @property
    def collection(self) -> tuple[int, Store]:
        """Column and store of the collection that answers it; only of a component that is collected."""
        assert isinstance(self.component, Collected) and self.column is not None
        return self.column, self.component.store
