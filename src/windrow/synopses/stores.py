"""What a share group keeps that is no fixed number of words: a collection per value column and store.

Every question of its kind is answered from the same collection, so equal ones are kept once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow.aggregates.collected import Collected, Store
from windrow.aggregates.columns import validity
from windrow.kernels.jit import Ints
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.collections import collection
from windrow.synopses.placed import Placed
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.spec import ComponentSpec


class Stores:
    """The collections of a share group."""

    def __init__(self) -> None:
        self._collections: dict[tuple[int, Store], Collection] = {}

    def __len__(self) -> int:
        return len(self._collections)

    def __iter__(self) -> Iterator[Collection]:
        return iter(self._collections.values())

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(one.nbytes for one in self)

    def add(self, spec: ComponentSpec, panes: int) -> None:
        """Keep a collection for a component, unless another one has asked for it; so many panes are closed."""
        if spec.collection not in self._collections:
            made = self._collections[spec.collection] = collection(spec.collection[1])
            made.fill(panes)

    def of(self, spec: ComponentSpec) -> Collection:
        """The collection of a component."""
        return self._collections[spec.collection]

    def keep(self, specs: Iterable[ComponentSpec], column_of: Mapping[int, int]) -> None:
        """Forget all collections but those of these components; their columns get other numbers."""
        used = {spec.collection for spec in specs if isinstance(spec.component, Collected)}
        self._collections = {
            (column_of[column], store): one
            for (column, store), one in self._collections.items()
            if (column, store) in used
        }

    def insert(self, placed: Placed, values: Sequence[pa.Array | None]) -> None:
        """The value columns of a batch."""
        for (column, _), one in self._collections.items():
            given = values[column]
            if given is not None:
                valid = validity(given)
                one.insert(*placed.of(valid), given if valid is None else given.drop_null())

    def absorb(self, spec: ComponentSpec, placed: Placed, entries: pa.Array) -> None:
        """What another share group gave as partials."""
        valid = validity(entries)
        self.of(spec).absorb(*placed.of(valid), entries if valid is None else entries.drop_null())

    def close(self, closing: Ints, staying: Ints) -> None:
        """As `Collection.close`, for all."""
        for one in self:
            one.close(closing, staying)

    def expire(self, panes: int) -> None:
        """Forget the first so many closed panes."""
        for one in self:
            one.expire(panes)

    def select(self, live: Ints) -> None:
        """Group live[k] becomes k; the others have no cells."""
        for one in self:
            one.select(live)

    def lookup(self, spec: ComponentSpec, windows: Windows) -> pa.Array:
        """The answers to the question of a component."""
        assert isinstance(spec.component, Collected)
        return self.of(spec).lookup(windows, spec.component.question)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        arrays: dict[str, Any] = {}
        for k, one in enumerate(self):
            arrays |= prefixed(f"collection.{k}", one.snapshot())
        return arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        for k, one in enumerate(self):
            one.restore(within(f"collection.{k}", arrays))
