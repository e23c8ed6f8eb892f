"""δ*: each row once while a copy of it lives, every end known, never more than two entries for an output row."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.lifetimes import (
    SCHEMAS,
    Output,
    delta,
    epochs,
    lives,
    numbers,
    present,
    restarted,
    rows_of,
    tuples,
)
from windrow.errors import StateError
from windrow.operators.distinct import Distinct
from windrow.operators.listed_distinct import ListedDistinct
from windrow.state.rows import NEVER, Delta, Epoch, Rows

LETTERS = pa.schema([("v", pa.string())])
INTS = pa.schema([("k", pa.int64())])


@pytest.mark.parametrize("few", [0, 1024])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=st.data())
def test_at_every_instant_the_output_has_each_row_once(few, schema, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.operators.distinct.FEW", few)
        rows = data.draw(lives(schema, cut=False))
        pieces = data.draw(epochs())
        stop = data.draw(st.integers(0, len(pieces)))
        operator, output = Distinct(schema), Output()
        for i, epoch in enumerate(pieces):
            if i == stop:
                operator = restarted(operator, Distinct(schema))
            result = operator.step([delta(rows, epoch, schema)], epoch)
            assert not len(result.cut)
            output.add(result, epoch)
            here = sum(output.at(epoch.upto).values())
            assert here <= operator.rows <= 2 * here
        for instant in range(pieces[-1].upto + 1):
            assert output.at(instant) == Counter(set(present(rows, instant)))


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=st.data())
def test_lists_have_the_same_output_and_hold_all_rows(schema, data):
    rows = data.draw(lives(schema, cut=False))
    pieces = data.draw(epochs())
    stop = data.draw(st.integers(0, len(pieces)))
    operator, output = ListedDistinct(schema), Output()
    for i, epoch in enumerate(pieces):
        if i == stop:
            operator = restarted(operator, ListedDistinct(schema))
        result = operator.step([delta(rows, epoch, schema)], epoch)
        assert not len(result.cut)
        output.add(result, epoch)
        held = present(rows, epoch.upto)
        assert operator.rows == held.total() + len(held)
    for instant in range(pieces[-1].upto + 1):
        assert output.at(instant) == Counter(set(present(rows, instant)))


def test_figure_3_1_c_the_younger_a_takes_over():
    # RANGE 6; a at 1 and 4, c at 3: the a of 1 ends at 7, and that of 4 follows it until 10.
    came = [(("a",), 1, 7), (("c",), 3, 9), (("a",), 4, 10)]
    expected = [(("a",), 1, 7), (("a",), 7, 10), (("c",), 3, 9)]
    whole = Distinct(LETTERS).step([Delta.of(rows_of(came, LETTERS))], Epoch(0, 12))
    assert sorted(tuples(whole.came)) == expected

    operator, seen = Distinct(LETTERS), []
    for instant in range(1, 13):
        rows = rows_of([row for row in came if row[1] == instant], LETTERS)
        seen += tuples(operator.step([Delta.of(rows)], Epoch(instant - 1, instant)).came)
        if instant == 6:
            assert operator.rows == 3  # a, c, and the a that waits
    assert seen == [expected[0], expected[2], expected[1]]  # in the order of the output, not of arrival
    assert operator.rows == 0


def test_of_many_duplicates_only_the_longest_living_is_kept():
    operator = Distinct(INTS)
    count = 10_000
    ts = np.arange(1, count + 1)
    exp = np.random.default_rng(3).permutation(ts) + count
    result = operator.step([Delta.of(numbers(INTS, np.zeros(count, np.int64), ts, exp))], Epoch(0, count))
    assert tuples(result.came) == [((0,), 1, int(exp[0]))]
    assert operator.rows == 2
    result = operator.step([Delta.none(INTS)], Epoch(count, 3 * count))
    assert tuples(result.came) == [((0,), int(exp[0]), 2 * count)]


def test_rows_that_never_end():
    operator = Distinct(INTS)
    rows = rows_of([((1,), 1, 3), ((1,), 2, NEVER), ((2,), 2, NEVER), ((2,), 2, 5)], INTS)
    result = operator.step([Delta.of(rows)], Epoch(0, 2))
    assert sorted(tuples(result.came)) == [((1,), 1, 3), ((2,), 2, NEVER)]
    result = operator.step([Delta.none(INTS)], Epoch(2, 1000))
    assert tuples(result.came) == [((1,), 3, NEVER)]
    assert operator.rows == 2
    assert restarted(operator, Distinct(INTS)).rows == 2


def test_negative_tuples_are_refused():
    cut = rows_of([((1,), 5, 9)], INTS)
    with pytest.raises(StateError, match="strict form of DISTINCT"):
        Distinct(INTS).step([Delta(Rows.none(INTS), cut)], Epoch(4, 5))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_state_is_bounded_though_rows_are_always_new(kind):
    schema = pa.schema([("k", kind)])
    operator = Distinct(schema)
    most, sizes = 0, []
    for step in range(200):
        ts = np.arange(step * 500, (step + 1) * 500) + 1
        result = operator.step([Delta.of(numbers(schema, ts // 2, ts, ts + 2000))], Epoch(int(ts[0]) - 1, int(ts[-1])))
        most = max(most, operator.rows)
        sizes.append(operator.nbytes)
        assert len(result.came) <= 1000
    assert most <= 2001
    assert max(sizes[100:]) <= max(sizes[:100]) <= 1_000_000
    operator.step([Delta.none(schema)], Epoch(100_000, 200_000))
    assert operator.rows == 0
    assert operator.describe().startswith("δ*: ")
