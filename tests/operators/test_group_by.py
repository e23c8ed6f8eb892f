"""A continuous group-by is, at every instant, the group-by of the rows that live then, however time is cut."""

from __future__ import annotations

import datetime
import json
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.aggregate_models import MODELS, close
from tests.operators.lifetimes import Life, Output, at, deltas, random_edges, random_lives, run
from tests.user_aggregates import ALL, Fussy, one_by_one
from windrow.aggregates.registry import aggregate
from windrow.errors import QueryError
from windrow.expressions import Program
from windrow.language.user_functions import UserFunction
from windrow.operators import group_contents
from windrow.operators.group_by import GroupBy
from windrow.sharing.member import Term
from windrow.state.rows import Delta, Epoch, Rows

SEEDS = st.integers(0, 1 << 32)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [1, 2, 3, -7, -(1 << 31), (1 << 31) - 1],
    pa.int64(): [1, 2, 3, -7, -(1 << 61), 1 << 61],
    pa.int8(): [1, -128, 127],
    pa.float64(): [0.1, 0.5, -2.25, 3.0, 1e-3],
    pa.float32(): [0.5, -2.25, 3.0],
    pa.decimal128(9, 2): [Decimal("0.10"), Decimal("-7.25"), Decimal("1234567.89")],
    pa.string(): ["", "a", "b", "é", "abc"],
    pa.date32(): [datetime.date(2001, 2, 3), datetime.date(1960, 1, 1), datetime.date(2024, 2, 29)],
    pa.timestamp("us"): [datetime.datetime(2001, 2, 3, 4, 5), datetime.datetime(1960, 1, 1)],
    pa.bool_(): [True, False],
}


def column(name: str, kind: pa.DataType) -> Program:
    """The program that reads a column."""
    return Program(name, kind, column=name)


def terms_of(kind: pa.DataType) -> tuple[list[str], list[Term]]:
    """All aggregates that take a value of this type; first COUNT(*)."""
    names, terms = ["*"], [Term(aggregate("COUNT"), None)]
    value = column("v", kind)
    for name, (parameters, _) in MODELS.items():
        try:
            terms.append(Term(aggregate(name, kind, parameters), value))
        except ValueError:
            continue
        names.append(name)
    return names, terms


def group_by(keys: dict[str, pa.DataType], terms: list[Term]) -> GroupBy:
    """With columns named like the keys, then a0, a1, …"""
    fields = [*keys.items(), *((f"a{i}", term.aggregate.type) for i, term in enumerate(terms))]
    return GroupBy([column(name, kind) for name, kind in keys.items()], terms, pa.schema(fields))


def check(output: Output, lives: list[Life], names: list[str], keys: int, until: int = 90) -> None:
    """The output at every instant is the model of the rows there; the value is the last column of a row."""
    for tau in range(until):
        groups: dict[Any, list[Any]] = {}
        for row in at(lives, tau):
            groups.setdefault(row[:keys], []).append(row[-1])
        if not keys:
            groups.setdefault((), [])
        found = {row[:keys]: row[keys:] for row, ts, exp in output.lives if ts <= tau < exp}
        assert found.keys() == groups.keys(), tau
        assert sum(1 for _, ts, exp in output.lives if ts <= tau < exp) == len(groups), tau
        for key, values in groups.items():
            there = [one for one in values if one is not None]
            wanted = [len(values) if name == "*" else MODELS[name][1](there) for name in names]
            for name, one, other in zip(names, found[key], wanted, strict=True):
                one = math.nan if one == "nan" else one  # noqa: PLW2901
                if isinstance(other, list):
                    other = repr(other)  # noqa: PLW2901
                assert close(one, other), (tau, key, name, one, other)


def rows_with(kind: pa.DataType, values: list[Any]) -> Any:
    """Rows (k, j, v) of few keys, a value in four is NULL."""

    def row(chance: random.Random) -> tuple[Any, ...]:
        value = None if chance.random() < 0.25 else chance.choice(values)
        return chance.choice(["a", "b", None]), chance.choice([1, None]), value

    return row


def input_schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("k", pa.string()), ("j", pa.int64()), ("v", kind)])


KEYS = {"k": pa.string(), "j": pa.int64()}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(seed=SEEDS, strict=st.sampled_from([0.0, 0.3, 1.0]), restored=st.booleans())
def test_all_aggregates_at_every_instant(kind: pa.DataType, seed: int, strict: float, restored: bool) -> None:
    names, terms = terms_of(kind)
    lives = random_lives(seed, 30, rows_with(kind, VALUES[kind]), strict)
    steps = list(deltas(lives, random_edges(seed), input_schema(kind)))
    operator = group_by(KEYS, terms)
    if not restored:
        output = run(operator, steps)
    else:
        output = Output()
        middle = len(steps) // 2
        for k, (delta, epoch) in enumerate(steps):
            if k == middle:
                meta, tables = operator.snapshot()
                operator = group_by(KEYS, terms)
                operator.restore(json.loads(json.dumps(meta)), tables)
            output.add(operator.step([delta], epoch), epoch)
    check(output, lives, names, 2)


WAYS = {
    "totals": ["COUNT", "SUM", "AVG"],
    "heaps": ["MIN", "MAX"],
    "moments": ["VAR_POP", "STDDEV_SAMP"],
    "sets": ["COUNT_DISTINCT", "SUM_DISTINCT", "AVG_DISTINCT"],
}


@pytest.mark.parametrize("subset", WAYS)
@pytest.mark.parametrize("kind", [pa.int32(), pa.float64()], ids=str)
@given(seed=SEEDS, strict=st.sampled_from([0.0, 0.5]))
def test_each_way_alone(kind: pa.DataType, subset: str, seed: int, strict: float) -> None:
    names = WAYS[subset]
    terms = [Term(aggregate(name, kind), column("v", kind)) for name in names]
    lives = random_lives(seed, 60, rows_with(kind, VALUES[kind]), strict)
    operator = group_by(KEYS, terms)
    output = run(operator, list(deltas(lives, random_edges(seed), input_schema(kind))))
    check(output, lives, names, 2)
    if subset != "heaps" and all(one.exp == (1 << 63) - 1 for one in lives):
        assert len(operator._held) == 0  # a negative tuple says all that totals need


WILD = [0.1, 1e308, -1e308, 5e-324, 1.7976931348623157e308, 1e16, -1.0, 2.0**-1030, 0.0, -0.0, 3e-310]
SPECIAL = [math.nan, math.inf, -math.inf]


@given(seed=SEEDS, strict=st.sampled_from([0.0, 0.5]), special=st.booleans())
def test_wild_doubles_leave_nothing_behind(seed: int, strict: float, special: bool) -> None:
    names = ["SUM", "MIN", "MAX", "COUNT", "SUM_DISTINCT", "COUNT_DISTINCT"]
    kind = pa.float64()
    terms = [Term(aggregate(name, kind), column("v", kind)) for name in names]
    lives = random_lives(seed, 60, rows_with(kind, WILD + (SPECIAL if special else [])), strict)
    output = run(group_by(KEYS, terms), list(deltas(lives, random_edges(seed), input_schema(kind))))
    check(output, lives, names, 2)


@given(seed=SEEDS)
def test_sums_of_random_bits_are_rounded_once(seed: int) -> None:
    chance = np.random.default_rng(seed)
    bits = chance.integers(-(1 << 63), (1 << 63) - 1, 40)
    values = bits.view(np.float64)
    close_ones = chance.normal(size=40) * 2.0 ** chance.integers(-60, 60, 40)
    pool = [float(one) for one in np.where(np.isfinite(values), values, 1.0)]
    kind = pa.float64()
    for chosen in (pool, [float(one) for one in close_ones]):
        lives = random_lives(seed, 40, rows_with(kind, chosen), 0.2)
        terms = [Term(aggregate("SUM", kind), column("v", kind))]
        output = run(group_by(KEYS, terms), list(deltas(lives, random_edges(seed), input_schema(kind))))
        for tau in range(60):
            wanted = {}
            for row in at(lives, tau):
                wanted.setdefault(row[:2], []).append(row[2])
            found = {row[:2]: row[2] for row, ts, exp in output.lives if ts <= tau < exp}
            for key, group in wanted.items():
                assert found[key] == MODELS["SUM"][1]([one for one in group if one is not None])


@given(seed=SEEDS, far=st.sampled_from([0.0, 1.0, 1e9, -1e15, 1e-200, 1e100]))
def test_variances_are_those_of_exact_arithmetic(seed: int, far: float) -> None:
    """Also where the mean is great beside the distances, and after values of any size have come and gone."""
    chance = np.random.default_rng(seed)
    pool = [far * (1 + float(one) * 1e-12) for one in chance.integers(-9, 9, 12)] + [1.0, -1e20, 1e-30]
    kind = pa.float64()
    names = ["VAR_POP", "VAR_SAMP"]
    terms = [Term(aggregate(name, kind), column("v", kind)) for name in names]
    lives = random_lives(seed, 40, rows_with(kind, pool), 0.2)
    output = run(group_by(KEYS, terms), list(deltas(lives, random_edges(seed), input_schema(kind))))
    for tau in range(60):
        groups: dict[Any, list[float]] = {}
        for row in at(lives, tau):
            groups.setdefault(row[:2], []).extend([] if row[2] is None else [row[2]])
        found = {row[:2]: row[2:] for row, ts, exp in output.lives if ts <= tau < exp}
        for key, values in groups.items():
            for name, one in zip(names, found[key], strict=True):
                wanted = MODELS[name][1](values)
                assert one == wanted or math.isclose(one, wanted, rel_tol=1e-15), (tau, name, values)


def test_a_variance_with_something_infinite_is_nan_until_it_leaves() -> None:
    terms = [Term(aggregate("VAR_POP", pa.float64()), column("v", pa.float64()))]
    lives = [Life(("a", 1, one), ts, end, end) for one, ts, end in ((1.0, 1, 9), (math.inf, 2, 5), (3.0, 3, 9))]
    output = run(group_by(KEYS, terms), list(deltas(lives, [0, 4, 20], input_schema(pa.float64()))))
    assert output.lives == [(("a", 1, 0.0), 1, 2), (("a", 1, "nan"), 2, 5), (("a", 1, 1.0), 5, 9)]


@given(seed=SEEDS, strict=st.sampled_from([0.0, 0.4]), first=st.integers(1, 8))
def test_without_keys_there_is_always_one_answer(seed: int, strict: float, first: int) -> None:
    kind = pa.int64()
    names, terms = terms_of(kind)
    lives = [one for one in random_lives(seed, 20, rows_with(kind, VALUES[kind]), strict) if one.ts >= first]
    operator = group_by({}, terms)
    output = Output()
    for delta, epoch in deltas(lives, random_edges(seed), input_schema(kind)):
        if epoch.since < first <= epoch.upto:
            operator.begin(first)
        output.add(operator.step([delta], epoch), epoch)
    assert not any(ts < first for _, ts, _ in output.lives)
    for tau in range(first, 80):
        values = [row[-1] for row in at(lives, tau)]
        (found,) = (row for row, ts, exp in output.lives if ts <= tau < exp)
        there = [one for one in values if one is not None]
        for name, one in zip(names, found, strict=True):
            wanted = len(values) if name == "*" else MODELS[name][1](there)
            assert close(one, repr(wanted) if isinstance(wanted, list) else wanted), (tau, name)


@given(seed=SEEDS)
def test_user_aggregates_see_rows_in_order(seed: int) -> None:
    """No row is cut: of equal ones any could be meant, and their order would not be certain."""
    value = column("v", pa.int64())
    functions = [UserFunction(name, made, _double(returns)) for name, (made, returns) in ALL.items()]
    terms = [Term(aggregate(one.name, pa.int64(), (), one), value) for one in functions]
    lives = random_lives(seed, 30, rows_with(pa.int64(), [1, 2, 3, 40]), 0.0)
    output = run(group_by(KEYS, terms), list(deltas(lives, random_edges(seed), input_schema(pa.int64()))))
    for tau in range(60):
        groups: dict[Any, list[Any]] = {}
        for row in at(lives, tau):
            groups.setdefault(row[:2], []).append(row[2])
        found = {row[:2]: row[2:] for row, ts, exp in output.lives if ts <= tau < exp}
        for key, values in groups.items():
            there = [one for one in values if one is not None]
            for name, one in zip(ALL, found[key], strict=True):
                wanted = one_by_one(name, there)
                assert one == wanted or math.isclose(one, wanted, rel_tol=1e-9), (tau, name)


def _double(text: str) -> Any:
    from sqlglot import exp

    return exp.DataType.build(text, dialect="duckdb")


def test_what_a_users_class_raises_stops_the_query() -> None:
    function = UserFunction("FUSSY", Fussy, _double("DOUBLE"))
    operator = group_by(KEYS, [Term(aggregate("FUSSY", pa.int64(), (), function), column("v", pa.int64()))])
    ((delta, epoch),) = deltas([Life(("a", 1, 13), 1, 9, 9)], [0, 5], input_schema(pa.int64()))
    with pytest.raises(QueryError, match="13 is not allowed"):
        operator.step([delta], epoch)


def test_a_sum_beyond_64_bits_is_an_error() -> None:
    operator = group_by(KEYS, [Term(aggregate("SUM", pa.int64()), column("v", pa.int64()))])
    lives = [Life(("a", 1, 1 << 62), ts, 20, 20) for ts in (1, 2, 3)]
    ((delta, epoch),) = deltas(lives, [0, 5], input_schema(pa.int64()))
    with pytest.raises(QueryError, match="64-bit"):
        operator.step([delta], epoch)


@given(seed=SEEDS)
def test_contents_of_any_chunk_size(seed: int) -> None:
    kind = pa.float64()
    names = ["PERCENTILE_CONT", "MODE", "QUANTILE", "TOP_K"]
    terms = [Term(aggregate(name, kind, MODELS[name][0]), column("v", kind)) for name in names]
    lives = random_lives(seed, 40, rows_with(kind, VALUES[kind]), 0.3)
    before = group_contents.MOST_ROWS
    group_contents.MOST_ROWS = 7
    try:
        output = run(group_by(KEYS, terms), list(deltas(lives, random_edges(seed), input_schema(kind))))
    finally:
        group_contents.MOST_ROWS = before
    check(output, lives, names, 2)


def test_equal_answers_are_not_replaced() -> None:
    terms = [Term(aggregate("MAX", pa.int32()), column("v", pa.int32()))]
    lives = [Life(("a", 1, 5), 1, 50, 50), *(Life(("a", 1, 3), ts, ts + 4, ts + 4) for ts in range(2, 30))]
    output = run(group_by(KEYS, terms), list(deltas(lives, [0, 7, 8, 20, 60], input_schema(pa.int32()))))
    assert output.lives == [(("a", 1, 5), 1, 50)]


@pytest.mark.parametrize("names", [["SUM", "COUNT"], ["MAX", "AVG"], ["MODE"], ["COUNT_DISTINCT"]])
@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
def test_state_does_not_grow_with_the_stream(names: list[str], kind: pa.DataType) -> None:
    """Ever new keys and values; a third of the rows is cut."""
    names = [name for name in names if kind == pa.float64() or name not in ("SUM", "AVG")]
    value = column("v", kind)
    operator = group_by({"k": pa.string()}, [Term(aggregate(name, kind, MODELS[name][0]), value) for name in names])
    schema = pa.schema([("k", pa.string()), ("v", kind)])
    sizes = []
    before: Rows | None = None
    batch = 500
    for step in range(60):
        ts = np.arange(step * batch + 1, (step + 1) * batch + 1)
        keys = pa.array([f"key {number // 3}" for number in ts])
        values = pa.array(ts * 0.5) if kind == pa.float64() else pa.array([f"v{number}" for number in ts])
        came = Rows(pa.RecordBatch.from_arrays([keys, values], schema=schema), ts, ts + 1000)
        cut = Rows.none(schema)
        if before is not None:
            some = before.take(np.arange(0, batch, 3))
            cut = Rows(some.batch, np.full(len(some), step * batch + 1), some.exp)
        operator.step([Delta(came, cut)], Epoch(step * batch, (step + 1) * batch))
        before = came
        sizes.append(operator.nbytes)
    assert max(sizes[40:]) <= 1.5 * max(sizes[8:24])
    assert operator.rows < 4000
    operator.step([Delta.none(schema)], Epoch(60 * batch, 1 << 40))
    assert operator.rows == 0


def test_describe_says_what_is_kept() -> None:
    kind = pa.float64()
    names = ["COUNT", "SUM", "MAX", "MODE"]
    operator = group_by(KEYS, [Term(aggregate(name, kind), column("v", kind)) for name in names])
    assert operator.describe() == (
        "replaced whenever the answer of a group changes; running totals for COUNT; exact sums for SUM; "
        "heaps for MAX; contents for MODE"
    )
