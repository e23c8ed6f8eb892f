"""KLL_SKETCH_AGG: Apache reads the bytes, answers within the bound over many seeds, updates and merges them."""

from __future__ import annotations

import math
import struct

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from tests.synopses.test_sketches import DATA, SEEDS, fill
from windrow.aggregates.sketched import sketched
from windrow.synopses import open_entries
from windrow.synopses.collections import collection
from windrow.synopses.kll_format import capacity
from windrow.testing.sketches import kll_sketch

Sketch = datasketches.kll_doubles_sketch
SLACK = 2.5
"""Apache flips coins when it merges; a rank is within its bound in 99 of 100 cases, and six sigmas are more."""
FRACTIONS = (0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0)


def bytes_of(values: np.ndarray, panes: int, k: int, rng: np.random.Generator) -> bytes:
    """The answer of KLL_SKETCH_AGG over all panes."""
    component = sketched("KLL_SKETCH_AGG", pa.array(values).type, (k,))
    kept = collection(component.store)
    windows = fill(kept, values, panes, 3, rng)
    answer: bytes = kept.lookup(windows, component.question)[0].as_py()
    return answer


def worst_rank(sketch: Sketch, values: np.ndarray) -> float:
    """How far ranks of quantiles, and ranks themselves, are off: as a share of the values."""
    ordered, errors = np.sort(values), []
    for phi in FRACTIONS:
        found = sketch.get_quantile(phi, True)
        low, high = np.searchsorted(ordered, found, "left"), np.searchsorted(ordered, found, "right")
        assert low < high, "an answer is one of the values"
        wanted = max(1.0, phi * len(values))
        errors += [low + 1 - math.ceil(wanted), wanted - high]
        errors.append(abs(sketch.get_rank(found, True) * len(values) - high))
    return max(errors) / len(values)


@pytest.mark.parametrize("many_entries", [1 << 20, 20_000], ids=["whole panes", "cut open"])
@pytest.mark.parametrize("name", DATA)
def test_rank_error_when_apache_answers(name: str, many_entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_entries, "MANY_ENTRIES", many_entries)
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        values = DATA[name](rng, int(rng.choice([3, 100, 201, 900, 5000, 60_000])))
        for k in (8, 200, 256):
            sketch = Sketch.deserialize(bytes_of(values, int(rng.choice([1, 7, 40])), k, rng))
            assert (sketch.n, sketch.k) == (len(values), k)
            if many_entries > len(values):
                assert (sketch.get_min_value(), sketch.get_max_value()) == (values.min(), values.max())
            assert worst_rank(sketch, values) <= 0.005 + 1 / k
            # What Apache says of a sketch with this k (at 99 %) is true of ours.
            assert worst_rank(sketch, values) <= sketch.normalized_rank_error(False)


@pytest.mark.parametrize("many", [0, 1, 2, 9, 200, 201, 3000, 100_000])
def test_apache_updates_and_merges_our_sketches(many: int) -> None:
    """With itself, with Apache's own in both directions, with one of another k, and with more values."""
    rng = np.random.default_rng(many)
    values, others = rng.random(many), 1 + rng.random(5_000)
    theirs = Sketch(200)
    for one in others.tolist():
        theirs.update(one)
    for k in (8, 200, 256):
        ours = bytes_of(values, 5, k, rng)
        for one, other in ((ours, theirs.serialize()), (theirs.serialize(), ours)):
            first, second = Sketch.deserialize(one), Sketch.deserialize(other)
            first.merge(second)
            assert first.n == many + len(others)
            assert worst_rank(first, np.concatenate([values, others])) <= SLACK * first.normalized_rank_error(False)
            again = Sketch.deserialize(first.serialize())
            assert again.n == first.n and again.get_quantile(0.5) == first.get_quantile(0.5)
        grown = Sketch.deserialize(ours)
        for one in others.tolist():
            grown.update(one)
        assert grown.n == many + len(others)
        assert worst_rank(grown, np.concatenate([values, others])) <= SLACK * grown.normalized_rank_error(False)
        twice = Sketch.deserialize(ours)
        twice.merge(Sketch.deserialize(ours))
        assert twice.n == 2 * many


def test_few_values_are_exact() -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 7, 50_000).astype(np.float64)
    sketch = Sketch.deserialize(bytes_of(values, 9, 200, rng))
    for one in range(7):
        assert round(sketch.get_rank(one, True) * len(values)) == (values <= one).sum()


def test_only_the_values_matter() -> None:
    """The order of rows and the cut into batches do not show; nor do panes, as long as each keeps all its values."""
    values = np.random.default_rng(2).normal(size=4_000).round(1)
    both = (values, values[::-1])
    found = {bytes_of(one, panes, 50, np.random.default_rng(panes)) for one in both for panes in (1, 9)}
    assert found == {kll_sketch(values.tolist(), 50)}


def test_nan_is_no_value_to_apache() -> None:
    values = np.array([math.nan, 2.0, -math.inf, math.nan, 7.0, math.inf])
    sketch = Sketch.deserialize(bytes_of(values, 2, 200, np.random.default_rng(1)))
    assert (sketch.n, sketch.get_min_value(), sketch.get_max_value()) == (4, -math.inf, math.inf)
    assert Sketch.deserialize(bytes_of(values[[0, 3]], 1, 200, np.random.default_rng(1))).is_empty()


def test_small_sketches_have_the_bytes_of_apache() -> None:
    for many in (0, 1):
        theirs = Sketch(200)
        for one in range(many):
            theirs.update(one)
        ours = bytes_of(np.arange(many, dtype=np.float64), 2, 200, np.random.default_rng(1))
        assert ours == bytes(theirs.serialize())


def test_the_room_is_that_of_apache() -> None:
    rng = np.random.default_rng(8)
    for k in (8, 53, 200):
        theirs, levels = Sketch(k), 0
        for _ in range(12):
            for one in rng.random(int(rng.integers(1, 9_000))).tolist():
                theirs.update(one)
            data = bytes(theirs.serialize())
            levels = data[18]
            (first,) = struct.unpack_from("<I", data, 20)
            assert theirs.num_retained == capacity(k, levels) - first
        assert levels > 8
