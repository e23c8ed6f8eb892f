"""The collections by name."""

from __future__ import annotations

from windrow.aggregates.collected import Store
from windrow.synopses.collection import Collection
from windrow.synopses.frequencies import Frequencies
from windrow.synopses.frequent import Frequent
from windrow.synopses.hll import Hll
from windrow.synopses.sketches import FrequentItemsSketch, QuantileSketch
from windrow.synopses.theta import Theta

COLLECTIONS: dict[str, type[Collection]] = {
    cls.name: cls for cls in (Frequencies, Frequent, Hll, Theta, QuantileSketch, FrequentItemsSketch)
}


def collection(store: Store) -> Collection:
    """An empty collection of this kind."""
    return COLLECTIONS[store.name](store)
