"""⋈: at every instant all combinations that satisfy the predicates, whatever the order, also when it changes."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.lifetimes import HORIZON, Life, Output, delta, epochs, lives, present, restarted
from windrow.expressions import Compiler
from windrow.operators.join import Equality, Join
from windrow.operators.join_watch import distinct_of
from windrow.plan.patterns import Pattern
from windrow.state.choice import make_buffer
from windrow.state.rows import Delta, Epoch, Rows

COMPILER = Compiler()
KINDS = {"a": pa.int64(), "b": pa.string()}
Pair = tuple[tuple[int, str], tuple[int, str]]


def schema_of(number: int) -> pa.Schema:
    return pa.schema([(f"x{number}.{name}", kind) for name, kind in KINDS.items()])


def make(count: int, pairs: list[Pair], orders: Any = None, *, strict: bool, null_safe: bool = False) -> Join:
    equalities = []
    for (left, first), (right, second) in pairs:
        programs = [COMPILER.column(f"x{n}.{name}", KINDS[name]) for n, name in ((left, first), (right, second))]
        equalities.append(Equality((left, right), (programs[0], programs[1])))
    pattern = Pattern.STR if strict else Pattern.WK
    buffers = [lambda schema, indexes: make_buffer(pattern, "upa", schema, indexes)] * count
    schemas = [schema_of(number) for number in range(count)]
    return Join(schemas, buffers, equalities, [], orders, strict=[strict] * count, null_safe=null_safe)


def expected(inputs: list[list[Life]], pairs: list[Pair], instant: int, *, null_safe: bool) -> Counter[tuple[Any, ...]]:
    """The join of the relations at an instant, by nested loops."""
    names = list(KINDS)
    result: Counter[tuple[Any, ...]] = Counter()
    for rows in product(*(list(present(one, instant).elements()) for one in inputs)):
        sides = [tuple(rows[n][names.index(name)] for n, name in pair) for pair in pairs]
        if all(left == right and (null_safe or left is not None) for left, right in sides):
            result[tuple(value for row in rows for value in row)] += 1
    return result


@st.composite
def joins(draw: st.DrawFn) -> tuple[int, list[Pair]]:
    """2 to 4 inputs and any equalities between them, also none, and several over one column."""
    count = draw(st.integers(2, 4))
    pairs: list[Pair] = []
    for _ in range(draw(st.integers(1, 5))):
        left, right = draw(st.permutations(range(count)))[:2]
        name = draw(st.sampled_from(list(KINDS)))
        pairs.append(((left, name), (right, name)))
    return count, pairs


@st.composite
def orders_of(draw: st.DrawFn, count: int) -> list[list[int]]:
    return [draw(st.permutations([other for other in range(count) if other != n])) for n in range(count)]


@given(data=st.data(), join=joins(), steps=epochs(), null_safe=st.booleans())
@pytest.mark.parametrize("strict", [False, True], ids=["expiring", "cut"])
def test_answers_do_not_depend_on_orders_that_change_at_any_moment(
    strict: bool, data: st.DataObject, join: tuple[int, list[Pair]], steps: list[Epoch], null_safe: bool
) -> None:
    count, pairs = join
    schemas = [schema_of(number) for number in range(count)]
    inputs = [data.draw(lives(schema_of(0), cut=strict)) for _ in range(count)]
    inputs = [one[: 24 // count] for one in inputs]
    operator = make(count, pairs, data.draw(st.none() | orders_of(count)), strict=strict, null_safe=null_safe)
    output = Output()
    for epoch in steps:
        deltas = [delta(one, epoch, schema) for one, schema in zip(inputs, schemas, strict=True)]
        output.add(operator.step(deltas, epoch), epoch)
        event = data.draw(st.sampled_from(["", "", "order", "restart"]))
        if event == "order":
            operator.order(data.draw(orders_of(count)))
        elif event == "restart":
            fresh = make(count, pairs, strict=strict, null_safe=null_safe)
            restarted(operator, fresh)
            operator = fresh
    for instant in range(1, HORIZON + 12):
        assert output.at(instant) == expected(inputs, pairs, instant, null_safe=null_safe)


def test_a_key_reaches_across_inputs() -> None:
    """x0.a = x1.a AND x1.a = x2.a: rows of x0 probe x2 by an index, in the order x0, x2, x1 too."""
    operator = make(3, [((0, "a"), (1, "a")), ((1, "a"), (2, "a"))], [[2, 1], [0, 2], [0, 1]], strict=False)
    assert all(step.keys == (0,) for steps in operator._steps for step in steps)


def test_two_columns_of_one_input_that_must_be_equal() -> None:
    schema = pa.schema([("x0.a", pa.int64()), ("x0.c", pa.int64())])
    other = pa.schema([("x1.a", pa.int64())])
    column = COMPILER.column
    equalities = [
        Equality((0, 1), (column("x0.a", pa.int64()), column("x1.a", pa.int64()))),
        Equality((0, 1), (column("x0.c", pa.int64()), column("x1.a", pa.int64()))),
    ]
    buffers = [lambda schema, indexes: make_buffer(Pattern.WKS, "upa", schema, indexes)] * 2
    join = Join([schema, other], buffers, equalities, [], strict=[False, False])
    ticks = np.array([1, 1], np.int64)
    left = Rows(pa.RecordBatch.from_pydict({"x0.a": [1, 1], "x0.c": [1, 2]}, schema), ticks, ticks + 9)
    right = Rows(pa.RecordBatch.from_pydict({"x1.a": [1, 2]}, other), ticks, ticks + 9)
    found = join.step([Delta.of(left), Delta.of(right)], Epoch(0, 1))
    assert found.came.batch.to_pylist() == [{"x0.a": 1, "x0.c": 1, "x1.a": 1}]


def feed(join: Join, keys: list[Any], tick: int) -> Delta:
    """One epoch of rows with these values of column a."""
    deltas = []
    for number, values in enumerate(keys):
        ticks = np.full(len(values), tick)
        arrays = [pa.array(values, pa.int64()), pa.nulls(len(values), pa.string())]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema_of(number))
        deltas.append(Delta.of(Rows(batch, ticks, ticks + 10)))
    return join.step(deltas, Epoch(tick - 1, tick))


def test_a_better_order_is_chosen_while_the_join_runs() -> None:
    """x1 has one value only, which every row of x0 meets a hundred times; hardly any of them is in x2."""
    pairs: list[Pair] = [((0, "a"), (1, "a")), ((1, "a"), (2, "a"))]
    adaptive = make(3, pairs, strict=False)
    fixed = make(3, pairs, [[1, 2], [0, 2], [0, 1]], strict=False)
    assert adaptive.describe().startswith("order x0, x1, x2, until rates are known")
    random = np.random.default_rng(7)
    for tick in range(1, 200):
        keys = [np.zeros(20), np.zeros(20), random.integers(1, 1000, 20)]
        keys[2][0] = 0 if tick % 50 == 0 else 1
        mine, theirs = (feed(join, keys, tick) for join in (adaptive, fixed))
        assert len(mine.came) == len(theirs.came)
    assert adaptive.orders[0] == [2, 1]
    assert adaptive.orders[1] == [2, 0]
    told = re.match(
        r"order x2, x0, x1, estimated cost (\S+) per unit time \(others: x0, x1, x2: (\S+)\);", adaptive.describe()
    )
    assert told is not None
    mine_cost, written_cost = (float(cost.replace(",", "")) for cost in told.groups())
    assert mine_cost * 1.25 < written_cost
    assert fixed.orders == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize("values", [1, 10, 1000, 50_000])
def test_distinct_values_are_estimated_from_a_sample(values: int) -> None:
    column = np.random.default_rng(3).integers(0, values, 200_000)
    sample = column[:16_384]
    estimate = distinct_of(len(np.unique(sample)), len(sample), len(column))
    assert estimate == pytest.approx(len(np.unique(column)), rel=0.15)
