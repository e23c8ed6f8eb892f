"""HyperLogLog: the hash and format of Apache DataSketches, the error over many seeds, and sets decide alone."""

from __future__ import annotations

import math

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from windrow.aggregates.collected import Question, Store
from windrow.kernels.hll import REGISTERS, estimate
from windrow.synopses.collection import Windows
from windrow.synopses.hll import MOST_COUPONS, Hll
from windrow.synopses.hll_format import coupons_to_bytes, from_bytes, registers_to_bytes
from windrow.synopses.value_hashes import coupons_of

ASK = Question("count_distinct", pa.int64())


def lone_window(panes: int) -> Windows:
    """One window over all panes, one group."""
    return Windows(
        np.array([0]), np.array([panes]), np.array([0, 1]), np.zeros(1, np.int32), 1, np.arange(1, panes + 1)
    )


def counted(values: pa.Array, parts: int = 1, panes: int = 1) -> int:
    """The estimate for values that come in so many batches, spread over so many panes."""
    sketch = Hll(Store("hll", values.type))
    rng = np.random.default_rng(len(values))
    for part in np.array_split(rng.permutation(len(values)), parts):
        slots = rng.integers(0, panes, len(part)).astype(np.int32)
        sketch.insert(slots, np.zeros(len(part), np.int32), values.take(pa.array(part)))
    sketch.close(np.arange(panes), np.empty(0, np.int64))
    return int(sketch.lookup(lone_window(panes), ASK)[0].as_py())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, 1, -1, 2**62, -(2**63), 12345678901]),
        pa.array([0.0, 1.5, -2.25, 1e300, math.inf, math.nan]),
        pa.array(["a", "höst", "sixteen bytes!!!", "seventeen bytes!!", "x" * 100, "x" * 31, "x" * 32]),
    ],
    ids=str,
)
def test_coupons_are_those_of_apache(values: pa.Array) -> None:
    for one in values.to_pylist():
        theirs = datasketches.hll_sketch(12)
        theirs.update(one)
        (ours,) = coupons_of(pa.array([one], values.type))
        assert theirs.serialize_compact()[8:12] == int(ours).to_bytes(4, "little")


def test_equal_values_have_equal_coupons() -> None:
    assert len(set(coupons_of(pa.array([0.0, -0.0])).tolist())) == 1
    quiet, other = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.int64).view(np.float64)
    assert len(set(coupons_of(pa.array([quiet, other])).tolist())) == 1


def test_few_values_are_exact() -> None:
    for many in (0, 1, 2, 100, MOST_COUPONS):
        assert counted(pa.array(np.arange(many)), parts=3, panes=4) == many
    assert counted(pa.array(["", "a", "", "b"])) == 3


@pytest.mark.parametrize("many", [1000, 5_000, 20_000, 100_000])
def test_relative_error(many: int) -> None:
    """Within three standard errors in at least 99 of 100 cases, and unbiased."""
    seeds, sigma = 300, 1.04 / math.sqrt(REGISTERS)
    errors = []
    rng = np.random.default_rng(many)
    for _ in range(seeds):
        coupons = coupons_of(pa.array(rng.integers(-(2**62), 2**62, many)))
        registers = np.zeros(REGISTERS, np.int64)
        np.maximum.at(registers, coupons & (REGISTERS - 1), coupons >> 26)
        errors.append(estimate(np.bincount(registers, minlength=64).astype(np.int64)) / many - 1)
    assert np.mean(np.abs(errors) <= 3 * sigma) >= 0.99
    assert abs(np.mean(errors)) < 4 * sigma / math.sqrt(seeds)


@pytest.mark.parametrize("many", [500, 2000, 30_000])
def test_only_the_set_of_values_matters(many: int) -> None:
    values = pa.array(np.random.default_rng(1).integers(0, 2**40, many))
    twice = pa.concat_arrays([values, values])
    answers = {counted(one, parts, panes) for one in (values, twice) for parts in (1, 7) for panes in (1, 3, 20)}
    assert len(answers) == 1
    assert abs(answers.pop() / many - 1) < 0.05


def test_windows_slide_as_if_each_was_counted_alone() -> None:
    rng = np.random.default_rng(5)
    groups, panes = 3, 12
    sketch = Hll(Store("hll", pa.int64()))
    rows = []
    for pane in range(panes):
        for group in range(groups):
            many = int(rng.choice([0, 3, 200, 3000]))
            rows += [(pane, group, value) for value in rng.integers(0, 10_000, many).tolist()]
    slots, gids, values = (np.array(column) for column in zip(*rows, strict=True))
    sketch.insert(slots.astype(np.int32), gids.astype(np.int32), pa.array(values))
    sketch.close(np.arange(panes), np.empty(0, np.int64))
    spans = [(a, a + 4) for a in range(9)] + [(0, 1), (0, 12), (3, 3), (2, 7)]
    first, last = (np.array(side) for side in zip(*spans, strict=True))
    every = np.tile(np.arange(groups, dtype=np.int32), len(spans))
    windows = Windows(first, last, np.arange(len(spans) + 1) * groups, every, groups, np.arange(1, panes + 1))
    found = sketch.lookup(windows, ASK).to_pylist()
    for i, (a, b) in enumerate(spans):
        for group in range(groups):
            there = np.unique(values[(slots >= a) & (slots < b) & (gids == group)])
            alone = Hll(Store("hll", pa.int64()))
            alone.insert(np.zeros(len(there), np.int32), np.zeros(len(there), np.int32), pa.array(there, pa.int64()))
            alone.close(np.array([0]), np.empty(0, np.int64))
            assert found[i * groups + group] == alone.lookup(lone_window(1), ASK)[0].as_py()


def sketch_of(values: np.ndarray, kind: datasketches.tgt_hll_type = datasketches.tgt_hll_type.HLL_8) -> bytes:
    """What Apache's own sketch of the values is."""
    theirs = datasketches.hll_sketch(12, kind)
    for one in values.tolist():
        theirs.update(one)
    return bytes(theirs.serialize_compact())


def as_bytes(values: np.ndarray) -> bytes:
    """What ours is."""
    coupons = np.unique(coupons_of(pa.array(values)))
    if len(coupons) <= MOST_COUPONS:
        return coupons_to_bytes(coupons)
    registers = np.zeros(REGISTERS, np.uint8)
    np.maximum.at(registers, coupons & (REGISTERS - 1), (coupons >> 26).astype(np.uint8))
    return registers_to_bytes(registers)


@pytest.mark.parametrize("kind", ["HLL_4", "HLL_6", "HLL_8"])
@pytest.mark.parametrize("many", [0, 3, 7, 8, 50, 300, 5000, 200_000])
def test_apache_reads_our_bytes_and_we_read_theirs(many: int, kind: str) -> None:
    values = np.random.default_rng(many).integers(0, 2**50, many)
    ours = datasketches.hll_sketch.deserialize(as_bytes(values))
    assert abs(ours.get_estimate() - many) <= 0.05 * many
    # Merged with a sketch of the same values nothing is new; with one of others, all is.
    theirs = sketch_of(values, getattr(datasketches.tgt_hll_type, kind))
    for other, expected in ((theirs, many), (sketch_of(values + 2**51), 2 * many)):
        union = datasketches.hll_union(12)
        union.update(ours)
        union.update(datasketches.hll_sketch.deserialize(other))
        assert abs(union.get_estimate() - expected) <= 0.05 * expected
    read = from_bytes(theirs)
    coupons = np.unique(coupons_of(pa.array(values)))
    if read.dtype == np.uint8:
        registers = np.zeros(REGISTERS, np.uint8)
        np.maximum.at(registers, coupons & (REGISTERS - 1), (coupons >> 26).astype(np.uint8))
        assert np.array_equal(read, registers)
    else:
        assert np.array_equal(read, coupons)


def test_another_sketch_is_refused() -> None:
    with pytest.raises(ValueError, match="lg_k 12, found family 7 with lg_k 10"):
        from_bytes(bytes(datasketches.hll_sketch(10).serialize_compact()))


@pytest.mark.parametrize("lg_k", [4, 7, 8, 10, 12])
@pytest.mark.parametrize("many", [0, 1, 7, 8, 24, 25, 300, 384, 385, 700, 6_000])
def test_a_sketch_of_any_size_is_what_apache_makes(many: int, lg_k: int) -> None:
    """The same mode, and the same coupons or registers: fewer registers are the maxima of those of lg_k 12."""
    values = np.arange(many) * 7919
    sketch = Hll(Store("hll", pa.int64()))
    sketch.insert(np.zeros(many, np.int32), np.zeros(many, np.int32), pa.array(values))
    sketch.close(np.array([0]), np.empty(0, np.int64))
    ours = sketch.lookup(lone_window(1), Question("sketch", pa.binary(), (lg_k,)))[0].as_py()
    theirs = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type.HLL_8)
    for one in values.tolist():
        theirs.update(one)
    wanted = bytes(theirs.serialize_compact())
    read = datasketches.hll_sketch.deserialize(ours)
    assert read.lg_config_k == lg_k and read.is_empty() == (many == 0)
    assert abs(read.get_estimate() - many) <= 4 * 1.04 / math.sqrt(1 << lg_k) * many
    if wanted[7] & 3 == 2:
        assert (ours[:4], ours[7], ours[32:]) == (wanted[:4], wanted[7], wanted[32:])
    else:
        start = 8 if wanted[7] & 3 == 0 else 12
        assert ours[:start] == wanted[:start] and len(ours) == len(wanted)
        assert sorted(np.frombuffer(wanted, "<u4", -1, start)) == np.frombuffer(ours, "<u4", -1, start).tolist()
