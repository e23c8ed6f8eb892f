"""Theta sketches: the hash and bytes of Apache DataSketches, the error over many seeds, and sets decide alone."""

from __future__ import annotations

import math

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from windrow.aggregates import blobs
from windrow.aggregates.collected import Question, Store
from windrow.errors import QueryError
from windrow.synopses import theta
from windrow.synopses.collection import Windows
from windrow.synopses.theta import Theta
from windrow.synopses.theta_format import MAX_THETA, from_bytes, to_bytes
from windrow.synopses.value_hashes import hashes_of

ASK = Question("sketch", pa.binary())


def lone_window(panes: int) -> Windows:
    """One window over all panes, one group."""
    return Windows(
        np.array([0]), np.array([panes]), np.array([0, 1]), np.zeros(1, np.int32), 1, np.arange(1, panes + 1)
    )


def sketched(values: pa.Array, lg_k: int = 12, parts: int = 1, panes: int = 1) -> bytes:
    """The sketch of values that come in so many batches, spread over so many panes."""
    kept = Theta(Store("theta", values.type, (lg_k,)))
    rng = np.random.default_rng(len(values))
    for part in np.array_split(rng.permutation(len(values)), parts):
        slots = rng.integers(0, panes, len(part)).astype(np.int32)
        kept.insert(slots, np.zeros(len(part), np.int32), values.take(pa.array(part)))
    kept.close(np.arange(panes), np.empty(0, np.int64))
    return bytes(kept.lookup(lone_window(panes), ASK)[0].as_py())


def of_apache(values: list[int] | list[float] | list[str], lg_k: int = 12) -> datasketches.compact_theta_sketch:
    """Apache's own sketch."""
    theirs = datasketches.update_theta_sketch(lg_k)
    for one in values:
        theirs.update(one)
    return theirs.compact()


def read(data: bytes) -> datasketches.compact_theta_sketch:
    return datasketches.compact_theta_sketch.deserialize(data)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, 1, -1, 2**62, -(2**63), 12345678901]),
        pa.array([0.0, 1.5, -2.25, 1e300, math.inf, math.nan, -0.0]),
        pa.array(["a", "höst", "sixteen bytes!!!", "seventeen bytes!!", "x" * 100, "x" * 31, "x" * 32]),
    ],
    ids=str,
)
def test_hashes_are_those_of_apache(values: pa.Array) -> None:
    for one in values.to_pylist():
        assert list(of_apache([one])) == hashes_of(pa.array([one], values.type)).tolist()
    assert sketched(values) == of_apache(values.to_pylist()).serialize()


@pytest.mark.parametrize("many", [0, 1, 2, 31, 32])
def test_few_values_are_the_bytes_of_apache(many: int) -> None:
    """Up to k values nothing is left out, and the order of rows shows nowhere."""
    values = list(range(100, 100 + many))
    ours = sketched(pa.array(values, pa.int64()), 5, parts=3, panes=4)
    assert ours == of_apache(values, 5).serialize()
    assert read(ours).get_estimate() == many and read(ours).is_empty() == (many == 0)


@pytest.mark.parametrize("many", [33, 1_000, 20_000])
def test_many_values_are_the_smallest_hashes(many: int) -> None:
    values = pa.array(np.arange(many) * 7919)
    hashes = np.unique(hashes_of(values))
    kept, bound = from_bytes(sketched(values, 5, parts=4, panes=3))
    assert kept.tolist() == hashes[:32].tolist() and bound == hashes[32]
    ours = read(sketched(values, 5))
    assert ours.is_estimation_mode() and ours.is_ordered() and ours.num_retained == 32
    assert ours.get_estimate() == pytest.approx(32 / (bound / 2**63))


def test_the_empty_string_is_a_value() -> None:
    assert read(sketched(pa.array(["", "a", "", "b"]))).get_estimate() == 3


@pytest.mark.parametrize("lg_k", [4, 8, 12])
@pytest.mark.parametrize("many", [10_000, 50_000])
def test_relative_error(lg_k: int, many: int) -> None:
    """Within three standard errors in at least 98 of 100 cases, unbiased, and as spread as the docs say."""
    seeds, sigma = 200, 1 / math.sqrt(2**lg_k - 1)
    errors = []
    rng = np.random.default_rng(many)
    for _ in range(seeds):
        hashes = np.unique(hashes_of(pa.array(rng.integers(-(2**62), 2**62, many))))
        estimate = read(to_bytes(hashes[: 2**lg_k + 1], 2**lg_k)).get_estimate()
        errors.append(estimate / many - 1)
    assert np.mean(np.abs(errors) <= 3 * sigma) >= 0.98
    assert abs(np.mean(errors)) < 4 * sigma / math.sqrt(seeds)
    assert np.std(errors) < 1.25 * sigma


@pytest.mark.parametrize("many", [500, 3_000, 300_000])
def test_only_the_set_of_values_matters(many: int) -> None:
    values = pa.array(np.random.default_rng(1).integers(0, 2**40, many))
    twice = pa.concat_arrays([values, values])
    made = {sketched(one, 10, parts, panes) for one in (values, twice) for parts in (1, 7) for panes in (1, 3, 20)}
    assert len(made) == 1


@pytest.mark.parametrize("answer_hashes", [1 << 23, 100], ids=["at once", "part by part"])
def test_windows_slide_as_if_each_was_sketched_alone(answer_hashes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theta, "ANSWER_HASHES", answer_hashes)
    rng = np.random.default_rng(5)
    groups, panes, lg_k = 3, 37, 5
    rows = []
    for pane in range(panes):
        for group in range(groups):
            many = int(rng.choice([0, 3, 20, 300]))
            rows += [(pane, group, value) for value in rng.integers(0, 1_000, many).tolist()]
    slots, gids, values = (np.array(column) for column in zip(*rows, strict=True))
    kept = Theta(Store("theta", pa.int64(), (lg_k,)))
    kept.insert(slots.astype(np.int32), gids.astype(np.int32), pa.array(values))
    kept.close(np.arange(panes), np.empty(0, np.int64))
    spans = [(a, a + 4) for a in range(9)] + [(0, 1), (0, 37), (3, 3), (2, 7), (5, 36), (1, 33), (36, 37)]
    first, last = (np.array(side) for side in zip(*spans, strict=True))
    every = np.tile(np.arange(groups, dtype=np.int32), len(spans))
    windows = Windows(first, last, np.arange(len(spans) + 1) * groups, every, groups, np.arange(1, panes + 1))
    found = kept.lookup(windows, ASK).to_pylist()
    for i, (a, b) in enumerate(spans):
        for group in range(groups):
            there = np.unique(values[(slots >= a) & (slots < b) & (gids == group)])
            assert found[i * groups + group] == sketched(pa.array(there, pa.int64()), lg_k)


@pytest.mark.parametrize("many", [20, 20_000])
def test_apache_computes_with_our_sketches(many: int) -> None:
    """Union, intersection and difference of ours, and of ours with Apache's own."""
    left, right = np.arange(0, 2 * many), np.arange(many, 3 * many)
    ours, theirs = (read(sketched(pa.array(side))) for side in (left, right))
    for other in (theirs, of_apache(right.tolist())):
        union = datasketches.theta_union()
        union.update(ours)
        union.update(other)
        both = datasketches.theta_intersection()
        both.update(ours)
        both.update(other)
        only = datasketches.theta_a_not_b().compute(ours, other)
        tolerance = 0.0 if many < 4096 else 0.08
        for result, expected in ((union.get_result(), 3 * many), (both.get_result(), many), (only, many)):
            assert result.get_estimate() == pytest.approx(expected, rel=tolerance)


def test_bytes_are_read_back() -> None:
    for many in (0, 1, 5, 50):
        hashes, bound = from_bytes(to_bytes(np.arange(1, many + 1), 16))
        assert hashes.tolist() == list(range(1, min(many, 16) + 1))
        assert bound == (17 if many > 16 else MAX_THETA)
        theirs = of_apache(list(range(many)))
        hashes, bound = from_bytes(theirs.serialize())
        assert hashes.tolist() == sorted(theirs) and bound == theirs.theta64
    with pytest.raises(ValueError, match=r"expected a compact theta sketch .*found family 7"):
        from_bytes(bytes(datasketches.hll_sketch(12).serialize_compact()))


def test_a_column_of_answers_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MOST_BYTES", 35)
    assert len(sketched(pa.array([1, 2]))) == 32
    with pytest.raises(QueryError, match=r"take 40 bytes, .* at most 2 GiB; take smaller sketches"):
        sketched(pa.array([1, 2, 3]))
