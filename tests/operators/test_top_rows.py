"""ORDER BY … LIMIT over a changing relation chooses, at every instant, from the rows that live then."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.lifetimes import Output, at, deltas, plain, random_edges, random_lives
from windrow.expressions import Program
from windrow.operators import top_rows
from windrow.operators.top_rows import TopRows
from windrow.state.rows import Delta, Epoch, Rows

SCHEMA = pa.schema([("s", pa.string()), ("n", pa.int32()), ("d", pa.float64())])
SEEDS = st.integers(0, 1 << 32)


def row(chance: random.Random) -> tuple[Any, ...]:
    """Few values, so that ties are common."""
    text = chance.choice(["a", "b", "é", "", None])
    return text, chance.choice([None, 1, 2, -3, 7]), chance.choice([None, 0.5, math.nan, math.inf, -1.0])


def place(value: Any, descending: bool, nulls_first: bool) -> tuple[Any, ...]:
    """What to sort by: NULLs first or last, NaN the greatest number."""
    if value is None:
        return (0 if nulls_first else 2,)
    if isinstance(value, str):
        return (1, [-one if descending else one for one in value.encode()] + ([1] if descending else []))
    number = math.inf if isinstance(value, float) and math.isnan(value) else value
    nan = isinstance(value, float) and math.isnan(value)
    return (1, -number, not nan) if descending else (1, number, nan)


def chosen(rows: list[Any], terms: list[tuple[int, bool, bool]], limit: int | None, offset: int) -> Counter[Any]:
    """One sort of all rows."""
    keys = [*terms, *((column, False, False) for column in range(3))]
    ordered = sorted(rows, key=lambda one: [place(one[column], desc, first) for column, desc, first in keys])
    kept = ordered[offset:] if limit is None else ordered[offset : offset + limit]
    return Counter(tuple(plain(value) for value in one) for one in kept)


def operator_of(terms: list[tuple[int, bool, bool]], limit: int | None, offset: int) -> TopRows:
    programs = [Program(field.name, field.type, column=field.name) for field in SCHEMA]
    return TopRows([(programs[column], desc, first) for column, desc, first in terms], limit, offset, SCHEMA)


TERMS = st.lists(st.tuples(st.integers(1, 2), st.booleans(), st.booleans()), max_size=2)


@pytest.mark.parametrize("spare", [0, 3, 64])
@given(
    seed=SEEDS,
    terms=TERMS,
    limit=st.sampled_from([0, 1, 2, 5, 100, None]),
    offset=st.sampled_from([0, 0, 1, 4]),
    strict=st.sampled_from([0.0, 0.4, 1.0]),
    restored=st.booleans(),
)
def test_the_first_rows_at_every_instant(
    spare: int, seed: int, terms: Any, limit: int | None, offset: int, strict: float, restored: bool
) -> None:
    lives = random_lives(seed, 100, row, strict)
    steps = list(deltas(lives, random_edges(seed), SCHEMA))
    operator = operator_of(terms, limit, offset)
    output = Output()
    before, top_rows.SPARE = top_rows.SPARE, spare
    try:
        for k, (delta, epoch) in enumerate(steps):
            if restored and k == len(steps) // 2:
                meta, tables = operator.snapshot()
                operator = operator_of(terms, limit, offset)
                operator.restore(json.loads(json.dumps(meta)), tables)
            output.add(operator.step([delta], epoch), epoch)
    finally:
        top_rows.SPARE = before
    for tau in range(80):
        assert output.at(tau) == chosen(at(lives, tau), terms, limit, offset), tau


def counted(limit: int, batch: int, steps: int) -> tuple[list[int], TopRows]:
    """Rows sorted per step, over windows of 2,000 rows with random values."""
    chance = np.random.default_rng(1)
    operator = operator_of([(1, True, False)], limit, 0)
    sorted_rows: list[int] = []
    ordered = top_rows.order

    def counting(windows: Any, keys: Any) -> Any:
        sorted_rows[-1] += len(windows)
        return ordered(windows, keys)

    top_rows.order = counting
    try:
        for step in range(steps):
            ts = np.arange(step * batch + 1, (step + 1) * batch + 1)
            columns = [pa.array(["x"] * batch), pa.array(chance.integers(0, 1 << 30, batch).astype(np.int32))]
            columns.append(pa.array(chance.normal(size=batch)))
            sorted_rows.append(0)
            rows = Rows(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), ts, ts + 2000)
            operator.step([Delta.of(rows)], Epoch(step * batch, (step + 1) * batch))
    finally:
        top_rows.order = ordered
    return sorted_rows, operator


def test_a_step_sorts_the_pool_and_not_all_rows() -> None:
    sorted_rows, operator = counted(limit=5, batch=10, steps=1000)
    assert sum(sorted_rows[400:]) / 600 < 400  # 2,000 rows live
    assert operator.rows == 2000
    assert operator.describe().endswith("a pool of at most 276 rows is sorted")


def test_state_does_not_grow_with_the_stream() -> None:
    _, short = counted(limit=5, batch=200, steps=30)
    _, long = counted(limit=5, batch=200, steps=150)
    assert long.nbytes <= 1.2 * short.nbytes
    long.step([Delta.none(SCHEMA)], Epoch(150 * 200, 1 << 40))
    assert long.rows == 0
