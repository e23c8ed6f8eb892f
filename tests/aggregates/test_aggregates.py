"""Each aggregate against plain Python: exact integers, fsum, fractions; NULLs, NaN, infinities, extremes."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import AGGREGATES, Component, Subtractable, aggregate
from windrow.aggregates.columns import validity
from windrow.aggregates.count import Count, CountRows
from windrow.aggregates.extremes import Max, Min
from windrow.aggregates.moments import Moments
from windrow.aggregates.sums import SumFloats, SumInts, SumWideInts
from windrow.errors import QueryError
from windrow.kernels.jit import frozen


def partial(component: Component, values: pa.Array) -> Any:
    """The words [words, 1] of all values in one cell."""
    words = component.identity.reshape(-1, 1).copy()
    valid = validity(values)
    rows = len(values) if valid is None or isinstance(component, CountRows) else int(valid.sum())
    cells = np.zeros(rows, np.int32)
    if isinstance(component, Count):
        component.accumulate(list(words), cells, cells)
    else:
        lifted = component.lift(values)
        component.accumulate(list(words), cells, frozen(lifted if valid is None else lifted[valid]))
    return words


def evaluate(name: str, kind: pa.DataType, panes: Sequence[Sequence[Any]]) -> Any:
    """The aggregate of all panes, combined one after the other."""
    one = aggregate(name, kind)
    total = [component.identity.reshape(-1, 1).copy() for component in one.components]
    for pane in panes:
        for component, into in zip(one.components, total, strict=True):
            component.combine(into, partial(component, pa.array(pane, kind)))
    answer = one.lower([component.typed(into) for component, into in zip(one.components, total, strict=True)])
    assert answer.type == one.type
    return answer[0].as_py()


def panes_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(st.none() | values, max_size=6), max_size=5)


def flat(panes: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for pane in panes for value in pane if value is not None]


def greatest_nan(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def near(wanted: float | None, rel: float, abs: float) -> Any:
    return None if wanted is None else pytest.approx(wanted, rel=rel, abs=abs)


INTS = {
    kind: st.integers(-(1 << bits), (1 << bits) - 1)
    for kind, bits in [(pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31), (pa.int64(), 63)]
} | {pa.uint8(): st.integers(0, 255), pa.uint32(): st.integers(0, (1 << 32) - 1)}


@pytest.mark.parametrize("kind", INTS, ids=str)
@settings(derandomize=True, max_examples=40, deadline=None)
@given(data=st.data())
def test_integers_are_exact_or_raise(kind: pa.DataType, data: st.DataObject) -> None:
    panes = data.draw(panes_of(INTS[kind]))
    values = flat(panes)
    assert evaluate("COUNT", kind, panes) == len(values)
    assert evaluate("MIN", kind, panes) == min(values, default=None)
    assert evaluate("MAX", kind, panes) == max(values, default=None)
    if not -(1 << 63) <= sum(values) < 1 << 63:
        with pytest.raises(QueryError, match="64-bit"):
            evaluate("SUM", kind, panes)
    else:
        assert evaluate("SUM", kind, panes) == (sum(values) if values else None)
    average = evaluate("AVG", kind, panes)
    if values:
        assert average == pytest.approx(float(Fraction(sum(values), len(values))), rel=1e-14, abs=1e-300)
    else:
        assert average is None


FINITE = st.floats(-1e15, 1e15) | st.sampled_from([1e16, -1e16, 1.0, 1e-9, -0.0, 0.0])


@settings(derandomize=True, max_examples=150, deadline=None)
@given(panes_of(FINITE))
def test_float_sums_are_those_of_fsum(panes: list[list[float | None]]) -> None:
    values = flat(panes)
    total = evaluate("SUM", pa.float64(), panes)
    if not values:
        assert total is None
        assert evaluate("AVG", pa.float64(), panes) is None
        return
    assert total == pytest.approx(math.fsum(values), rel=1e-12, abs=1e-300)
    assert evaluate("AVG", pa.float64(), panes) == pytest.approx(math.fsum(values) / len(values), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e300, -1e300, 1.0], 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, math.inf], math.nan),
        ([-math.inf, 5.0, -math.inf], -math.inf),
        ([0.1] * 10, 1.0),
    ],
)
def test_difficult_float_sums(values: list[float], total: float) -> None:
    for panes in ([values], [[value] for value in values]):
        assert evaluate("SUM", pa.float64(), panes) == pytest.approx(total, rel=1e-15, nan_ok=True)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(panes_of(st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0])))
def test_float_extremes_have_nan_as_the_greatest(panes: list[list[float | None]]) -> None:
    values = flat(panes)
    for name, choose in (("MIN", min), ("MAX", max)):
        wanted = choose(values, key=greatest_nan, default=None)
        found = evaluate(name, pa.float64(), panes)
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(panes_of(st.integers(-1000, 1000)))
def test_variances(panes: list[list[int | None]]) -> None:
    values = [Fraction(value) for value in flat(panes)]
    population = float(statistics.pvariance(values)) if values else None
    sample = float(statistics.variance(values)) if len(values) > 1 else None
    for kind in (pa.int32(), pa.float64(), pa.decimal128(10, 2)):
        assert evaluate("VAR_POP", kind, panes) == near(population, rel=1e-9, abs=1e-9)
        assert evaluate("VAR_SAMP", kind, panes) == near(sample, rel=1e-9, abs=1e-9)
        root = None if population is None else math.sqrt(population)
        assert evaluate("STDDEV_POP", kind, panes) == near(root, rel=1e-9, abs=1e-6)
        root = None if sample is None else math.sqrt(sample)
        assert evaluate("STDDEV_SAMP", kind, panes) == near(root, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_variance_with_an_infinity_or_nan_is_nan(bad: float) -> None:
    for panes in ([[1.0, bad, 2.0]], [[1.0], [bad], [2.0]], [[bad], [1.0, 2.0]], [[bad]]):
        assert math.isnan(evaluate("VAR_POP", pa.float64(), panes))


def test_variance_far_from_zero_keeps_its_digits() -> None:
    assert evaluate("VAR_SAMP", pa.float64(), [[1e9 + 4, 1e9 + 7], [1e9 + 13, 1e9 + 16]]) == pytest.approx(30.0)


DECIMAL = pa.decimal128(18, 2)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(panes_of(st.decimals(-(10**15), 10**15, places=2)))
def test_decimals_are_exact(panes: list[list[Decimal | None]]) -> None:
    values = flat(panes)
    assert evaluate("SUM", DECIMAL, panes) == (sum(values) if values else None)
    assert evaluate("MIN", DECIMAL, panes) == min(values, default=None)
    assert evaluate("MAX", DECIMAL, panes) == max(values, default=None)
    average = float(sum(values) / len(values)) if values else None
    assert evaluate("AVG", DECIMAL, panes) == near(average, rel=1e-12, abs=1e-9)


def test_a_decimal_sum_may_exceed_64_bits() -> None:
    great = Decimal("9999999999999999.99")
    assert evaluate("SUM", DECIMAL, [[great] * 100]) == great * 100
    assert evaluate("SUM", DECIMAL, [[-great] * 100]) == -great * 100


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.date32(), [dt.date(2024, 2, 29), dt.date(1969, 1, 1)]),
        (pa.timestamp("us"), [dt.datetime(2024, 2, 29, 1), dt.datetime(1969, 1, 1)]),
        (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 2, 29, 1, tzinfo=dt.timezone.utc)]),
        (pa.time64("us"), [dt.time(1, 2, 3), dt.time(23)]),
        (pa.duration("us"), [dt.timedelta(days=1), dt.timedelta(days=-3)]),
        (pa.bool_(), [True, False]),
        (pa.float32(), [0.5, -3.0]),
    ],
    ids=str,
)
def test_extremes_keep_the_type(kind: pa.DataType, values: list[Any]) -> None:
    assert evaluate("MIN", kind, [values, [None]]) == min(values)
    assert evaluate("MAX", kind, [values, [None]]) == max(values)
    assert evaluate("MAX", kind, [[None]]) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SUM", pa.string()),
        ("AVG", pa.date32()),
        ("SUM", pa.bool_()),
        ("SUM", pa.uint64()),
        ("SUM", pa.decimal128(30, 2)),
        ("VAR_POP", pa.string()),
        ("MIN", pa.list_(pa.int32())),
        ("MAX", None),
        ("MEDIAN", pa.int32()),
    ],
)
def test_a_pairing_that_does_not_exist_is_refused(name: str, kind: pa.DataType | None) -> None:
    with pytest.raises(ValueError, match=name):
        aggregate(name, kind)


def test_equal_components_are_shared() -> None:
    for kind in (pa.int32(), pa.int64(), pa.float64()):
        assert aggregate("sum", kind).components == aggregate("AVG", kind).components
        assert aggregate("MIN", kind).components[1] == aggregate("COUNT", kind).components[0]
    assert len({aggregate(name, pa.int32()).components for name in ("VAR_POP", "VAR_SAMP", "STDDEV_POP")}) == 1


def test_what_cannot_be_subtracted_has_no_subtract() -> None:
    for component in (Count(), CountRows(), SumInts(), SumWideInts()):
        assert isinstance(component, Subtractable)
    for other in (SumFloats(), Min(), Max(), Moments()):
        assert not hasattr(other, "subtract")
    assert Min().duplicate_insensitive
    assert not SumInts().duplicate_insensitive


def test_every_aggregate_says_what_it_answers() -> None:
    wanted = {"COUNT": pa.int64(), "SUM": pa.int64(), "MIN": pa.int16(), "MAX": pa.int16()}
    for name in AGGREGATES:
        assert aggregate(name, pa.int16()).type == wanted.get(name, pa.float64())
