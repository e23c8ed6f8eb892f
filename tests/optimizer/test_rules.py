"""Every rule: golden plans before and after, and the same answers with and without it, those of the reference."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import SQL_COLUMNS, STREAMS, flows, streams
from windrow.language.binder import bind
from windrow.language.bound import BoundQuery
from windrow.optimizer import place_negation, push_distinct
from windrow.optimizer.plan_cost import plan_cost
from windrow.optimizer.rules import RULES, optimize
from windrow.optimizer.walking import variants
from windrow.plan import nodes
from windrow.plan.build import build
from windrow.plan.explain import explain
from windrow.plan.periodic import in_panes
from windrow.testing import Reference, assert_same

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = [rule.__name__ for _, rule in RULES]
BETWEEN, ARROW = "\n\n════\n\n", "\n\n→"


def database(*, optimizer: bool = True) -> windrow.Database:
    db = windrow.connect(optimizer=optimizer)
    for name in STREAMS:
        db.execute(f"CREATE STREAM {name} {SQL_COLUMNS}")
    return db


def around(rule: str, text: str) -> tuple[nodes.Node, nodes.Node]:
    """The plan before and after a rule, with the rules above it applied."""
    plan: nodes.Node = build(bind(text, database().catalog))
    for name, (_, apply) in zip(NAMES, RULES, strict=True):
        before, plan = plan, apply(plan)
        if name == rule:
            return before, plan
    raise AssertionError(rule)


def drawn(plan: nodes.Node) -> str:
    assert isinstance(plan, nodes.Output)
    return "\n".join(line.rstrip() for line in explain(plan).split("\n\n")[0].splitlines())


def golden() -> list[tuple[str, str, str, str]]:
    """(rule, query, plan before, plan after)."""
    found = []
    for rule in NAMES:
        for case in (FIXTURES / f"{rule}.txt").read_text().rstrip("\n").split(BETWEEN):
            text, _, plans = case.partition("\n\n")
            before, _, after = plans.partition(ARROW)
            found.append((rule, text, before, before if after == " stays" else after.lstrip("\n")))
    return found


@pytest.mark.parametrize(("rule", "text", "before", "after"), golden())
def test_golden_plans(rule: str, text: str, before: str, after: str) -> None:
    old, new = around(rule, text)
    assert drawn(old) == before
    assert drawn(new) == after


@pytest.mark.parametrize("rule", NAMES)
def test_every_rule_has_golden_plans_that_it_changes_and_some_that_it_leaves(rule: str) -> None:
    changed = [before != after for name, _, before, after in golden() if name == rule]
    assert True in changed and False in changed


def answers(bound: BoundQuery, plan: nodes.Node, tables: dict[str, pa.Table]) -> pa.Table:
    """What operators that run exactly this plan answer."""
    assert isinstance(plan, nodes.Output)
    engine = database(optimizer=False)._engine
    query = engine.flows.add("q", bound, plan)
    for since, upto in ((-100, 10), (10, 20), (20, 1 << 40)):
        for name, table in tables.items():
            ticks = table["t"].to_numpy()
            engine.push(name, table.filter(pa.array((ticks > since) & (ticks <= upto))))
    engine.finish()
    return pa.Table.from_batches(query.batches, query.schema)


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, text, *_ in golden()])
@given(tables=streams())
@settings(max_examples=5)
def test_golden_plans_answer_like_the_reference(rule: str, text: str, tables: dict[str, pa.Table]) -> None:
    bound = bind(text, database().catalog)
    expected = Reference(bound, tables).answers()
    for plan in around(rule, text):
        assert_same(answers(bound, plan, tables), expected)


@given(text=flows(), tables=streams(rows=12), data=st.data())
def test_any_move_of_any_rule_keeps_the_answers(text: str, tables: dict[str, pa.Table], data: st.DataObject) -> None:
    """Also the moves that the cost model would not make, several after each other."""
    try:
        bound = bind(text, database().catalog)
        plan: nodes.Node = build(bound)
        assume(in_panes(bound, build(bound)) is None)
        expected = answers(bound, plan, tables)
    except windrow.Error:
        assume(False)
        raise
    for _, rule in RULES[:2]:
        if data.draw(st.booleans()):
            plan = rule(plan)
    for _ in range(3):
        others = [one for moves in (place_negation.moves, push_distinct.moves) for one in variants(plan, moves)]
        if not others:
            break
        plan = data.draw(st.sampled_from(others))
    assert_same(answers(bound, plan, tables), expected, absolute=1e-9)


@given(text=flows())
def test_the_optimizer_is_idempotent_and_never_chooses_a_dearer_place(text: str) -> None:
    try:
        plan = build(bind(text, database().catalog))
    except windrow.Error:
        assume(False)
        raise
    once = optimize(plan)
    assert optimize(once) == once
    for rule in (place_negation.place_negation, push_distinct.push_distinct):
        assert plan_cost(rule(plan)) <= plan_cost(plan)
