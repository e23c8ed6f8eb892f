"""ITEMS_SKETCH_AGG: Apache reads the bytes, its bounds hold over many seeds, and it updates and merges them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from tests.synopses.test_hll import lone_window
from tests.synopses.test_sketches import SEEDS
from windrow.aggregates.registry import aggregate
from windrow.aggregates.sketched import FEWEST_COUNTERS, sketched
from windrow.synopses import open_entries
from windrow.synopses.collections import collection
from windrow.testing.sketches import items_sketch

LONGS = datasketches.PyLongsSerDe()


def bytes_of(values: pa.Array, panes: int, rng: np.random.Generator) -> bytes:
    """The answer of ITEMS_SKETCH_AGG over all panes."""
    made = aggregate("ITEMS_SKETCH_AGG", values.type)
    component = sketched("ITEMS_SKETCH_AGG", values.type, ())
    assert made.components[0] == component and made.type == pa.binary()
    kept = collection(component.store)
    slots = rng.integers(0, panes, len(values)).astype(np.int32)
    for part in np.array_split(np.arange(len(values)), 4):
        kept.insert(slots[part], np.zeros(len(part), np.int32), values.take(pa.array(part)))
    kept.close(np.arange(panes), np.empty(0, np.int64))
    windows = lone_window(panes)
    answer: bytes = made.lower([[kept.lookup(windows, component.question)], [np.array([len(values)])]])[0].as_py()
    return answer


def read(data: bytes, kind: pa.DataType) -> Any:
    """By Apache's package."""
    if pa.types.is_string(kind):
        return datasketches.frequent_strings_sketch.deserialize(data)
    return datasketches.frequent_items_sketch.deserialize(data, LONGS)


def random_values(kind: str, many: int, rng: np.random.Generator) -> pa.Array:
    numbers = np.minimum(rng.zipf(float(rng.choice([1.05, 1.3])), many), 10**12) * rng.choice([-1, 1], many)
    return (
        pa.array(numbers) if kind == "ints" else pa.array([f"höst {n}" if n % 3 else "" for n in numbers], pa.string())
    )


@pytest.mark.parametrize("many_entries", [1 << 20, 2_000], ids=["whole panes", "cut open"])
@pytest.mark.parametrize("kind", ["ints", "strings"])
def test_bounds(kind: str, many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """lower ≤ true ≤ upper for every value, also one that is not there; they are at most N / 1024 apart."""
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    estimated = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = random_values(kind, int(rng.choice([10, 2_000, 40_000])), rng)
        sketch = read(bytes_of(values, int(rng.choice([1, 6, 30])), rng), values.type)
        true = Counter(values.to_pylist())
        assert sketch.total_weight == len(values)
        assert sketch.num_active_items <= FEWEST_COUNTERS
        for value, count in [*true.items(), ("nobody" if kind == "strings" else 3 * 10**13, 0)]:
            low, high = sketch.get_lower_bound(value), sketch.get_upper_bound(value)
            assert low <= count <= high <= low + len(values) / FEWEST_COUNTERS
        estimated += sketch.get_upper_bound("nobody" if kind == "strings" else 3 * 10**13) > 0
        kinds = datasketches.frequent_items_error_type
        threshold = len(values) // 50
        sure = {one[0] for one in sketch.get_frequent_items(kinds.NO_FALSE_POSITIVES, threshold)}
        all_ = {one[0] for one in sketch.get_frequent_items(kinds.NO_FALSE_NEGATIVES, threshold)}
        assert sure <= {value for value, count in true.items() if count > threshold} <= all_
    assert estimated, "no sketch has lost anything"


@pytest.mark.parametrize("kind", ["ints", "strings"])
def test_few_values_are_exact(kind: str) -> None:
    for many in (0, 1, 2, 6, 7, 500):
        rng = np.random.default_rng(many)
        values = random_values(kind, many, rng)
        data = bytes_of(values, 3, rng)
        assert data == items_sketch(values.to_pylist())
        sketch = read(data, values.type)
        assert sketch.is_empty() == (many == 0)
        for value, count in Counter(values.to_pylist()).items():
            assert sketch.get_lower_bound(value) == sketch.get_upper_bound(value) == count


@pytest.mark.parametrize("kind", ["ints", "strings"])
def test_many_values_of_one_pane(kind: str) -> None:
    values = random_values(kind, 30_000, np.random.default_rng(4))
    assert bytes_of(values, 1, np.random.default_rng(1)) == items_sketch(values.to_pylist())


def test_apache_updates_and_merges_our_sketches() -> None:
    rng = np.random.default_rng(5)
    ours, more = random_values("strings", 20_000, rng), random_values("strings", 20_000, rng)
    theirs = datasketches.frequent_strings_sketch(11)
    for one in more.to_pylist():
        theirs.update(one)
    data = bytes_of(ours, 6, rng)
    true = Counter(ours.to_pylist()) + Counter(more.to_pylist())
    merged, grown = (datasketches.frequent_strings_sketch.deserialize(data) for _ in range(2))
    merged.merge(theirs)
    for one in more.to_pylist():
        grown.update(one)
    theirs.merge(datasketches.frequent_strings_sketch.deserialize(data))
    for sketch in (merged, grown, theirs):
        assert sketch.total_weight == 40_000
        for value, count in true.items():
            assert sketch.get_lower_bound(value) <= count <= sketch.get_upper_bound(value)


def test_other_values_are_refused() -> None:
    for kind in (pa.float64(), pa.bool_(), pa.date32(), pa.uint64()):
        message = f"ITEMS_SKETCH_AGG does not take a value of type {kind}; it takes strings and integers"
        with pytest.raises(ValueError, match=re.escape(message)):
            aggregate("ITEMS_SKETCH_AGG", kind)
    with pytest.raises(ValueError, match="KLL_SKETCH_AGG does not take a value of type string; it takes numbers"):
        aggregate("KLL_SKETCH_AGG", pa.string(), (200,))
