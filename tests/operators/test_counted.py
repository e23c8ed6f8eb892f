"""Set operations and strict DISTINCT: at every instant the copies that the rule says; negative tuples in and out."""

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
from windrow.operators.counted import Counted, Rule
from windrow.state.rows import NEVER, Delta, Epoch, Rows

LETTERS = pa.schema([("v", pa.string())])
INTS = pa.schema([("k", pa.int64())])


def copies(rule, left, right):
    """The rule on multisets, as SQL says it."""
    match rule:
        case Rule.DISTINCT:
            return Counter(set(left))
        case Rule.EXCEPT_ALL:
            return left - right
        case Rule.EXCEPT:
            return Counter(set(left) - set(right))
        case Rule.INTERSECT_ALL:
            return left & right
        case Rule.INTERSECT:
            return Counter(set(left) & set(right))


@pytest.mark.parametrize("few", [0, 1024])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
@given(data=st.data())
def test_at_every_instant_the_output_has_the_copies_of_the_rule(few, schema, rule, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.operators.counted.FEW", few)
        sides = [data.draw(lives(schema, cut=data.draw(st.booleans()))) for _ in range(rule.inputs)]
        pieces = data.draw(epochs())
        stop = data.draw(st.integers(0, len(pieces)))
        operator, output = Counted(schema, rule), Output()
        for i, epoch in enumerate(pieces):
            if i == stop:
                operator = restarted(operator, Counted(schema, rule))
            output.add(operator.step([delta(rows, epoch, schema) for rows in sides], epoch), epoch)
        for instant in range(pieces[-1].upto + 1):
            left, right = (*(present(rows, instant) for rows in sides), Counter())[:2]
            assert output.at(instant) == copies(rule, left, right)


def run(rule, left, right, until):
    """Step by single instants; gives (instant, change, row)."""
    operator, changes = Counted(LETTERS, rule), []
    for now in range(1, until + 1):
        sides = [rows_of([row for row in side if row[1] == now], LETTERS) for side in (left, right)]
        result = operator.step([Delta.of(side) for side in sides], Epoch(now - 1, now))
        changes += [(ts, "-", row) for (row,), ts, exp in tuples(result.cut) if exp == NEVER]
        changes += [(ts, "+", row) for (row,), ts, exp in tuples(result.came) if exp == NEVER]
    return changes


def test_figure_2_1_e_negation_takes_d_back():
    left = [(("a",), 1, NEVER), (("d",), 2, NEVER), (("b",), 4, NEVER)]
    right = [(("a",), 1, NEVER), (("d",), 5, NEVER)]
    for rule in (Rule.EXCEPT_ALL, Rule.EXCEPT):
        assert run(rule, left, right, 6) == [(2, "+", "d"), (4, "+", "b"), (5, "-", "d")]


def test_negation_also_produces_when_the_right_side_expires():
    # RANGE 6, v3 = max(0, v1 - v2): S1 has a at 1 and 4, S2 has a at 2.
    left, right = [(("a",), 1, 7), (("a",), 4, 10)], [(("a",), 2, 8)]
    changes = [(1, "+", "a"), (2, "-", "a"), (4, "+", "a"), (7, "-", "a"), (8, "+", "a"), (10, "-", "a")]
    assert run(Rule.EXCEPT_ALL, left, right, 12) == changes
    whole = Counted(LETTERS, Rule.EXCEPT_ALL).step(
        [Delta.of(rows_of(side, LETTERS)) for side in (left, right)], Epoch(0, 12)
    )
    assert not len(whole.cut)
    assert sorted(tuples(whole.came)) == [(("a",), 1, 2), (("a",), 4, 7), (("a",), 8, 10)]


def test_changes_of_one_instant_are_netted():
    operator = Counted(INTS, Rule.DISTINCT)
    first = rows_of([((1,), 1, 5)], INTS)
    assert len(operator.step([Delta.of(first)], Epoch(0, 4))) == 1
    # One copy ends where the next begins: nothing is to be said.
    assert not len(operator.step([Delta.of(rows_of([((1,), 5, 8)], INTS))], Epoch(4, 6)))
    result = operator.step([Delta.none(INTS)], Epoch(6, 8))
    assert tuples(result.cut) == [((1,), 8, NEVER)]
    assert operator.rows == 0


def test_a_negative_tuple_cancels_the_end_that_was_scheduled():
    operator = Counted(INTS, Rule.DISTINCT)
    operator.step([Delta.of(rows_of([((1,), 1, 100), ((1,), 1, 50)], INTS))], Epoch(0, 1))
    assert not len(operator.step([Delta(Rows.none(INTS), rows_of([((1,), 5, 50)], INTS))], Epoch(1, 5)))
    assert not len(operator.step([Delta.none(INTS)], Epoch(5, 60)))
    assert tuples(operator.step([Delta.none(INTS)], Epoch(60, 100)).cut) == [((1,), 100, NEVER)]


def test_a_negative_tuple_without_a_row_is_an_error():
    with pytest.raises(StateError, match="more copies"):
        Counted(INTS, Rule.DISTINCT).step([Delta(Rows.none(INTS), rows_of([((1,), 5, NEVER)], INTS))], Epoch(1, 5))


def test_a_wrong_number_of_inputs_is_an_error():
    with pytest.raises(ValueError, match=r"EXCEPT has 2 input\(s\), and got 1"):
        Counted(INTS, Rule.EXCEPT).step([Delta.none(INTS)], Epoch(1, 5))


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("rule", [Rule.DISTINCT, Rule.EXCEPT_ALL, Rule.INTERSECT])
def test_state_is_bounded_though_rows_are_always_new(rule, early):
    operator = Counted(INTS, rule)
    sizes = []
    waiting = Rows.none(INTS)
    for step in range(200):
        ts = np.arange(step * 500, (step + 1) * 500) + 1
        rows = numbers(INTS, ts // 2, ts, ts + 2000)
        # Ended in the next step already: half of what is scheduled cancels the other half.
        cut = Rows(waiting.batch, np.full(len(waiting), ts[0]), waiting.exp)
        side = Delta(rows, cut if early else Rows.none(INTS))
        operator.step([side] * rule.inputs, Epoch(int(ts[0]) - 1, int(ts[-1])))
        waiting = rows
        assert operator.rows <= rule.inputs * 4000 + 2000
        sizes.append(operator.nbytes)
    assert max(sizes[100:]) <= max(sizes[:100]) <= 2_000_000
    cuts = Delta(Rows.none(INTS), Rows(waiting.batch, np.full(len(waiting), 100_001), waiting.exp))
    operator.step([cuts if early else Delta.none(INTS)] * rule.inputs, Epoch(100_000, 200_000))
    assert operator.rows == 0
    assert operator.describe().startswith(rule.name.replace("_", " "))
