"""The optimizer: rules, one per file, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from windrow.optimizer import place_negation, push_distinct
from windrow.optimizer.merge_subqueries import merge_subqueries
from windrow.optimizer.plan_cost import plan_cost
from windrow.optimizer.push_selections import push_selections
from windrow.optimizer.restrictions import reads_non_retroactive
from windrow.optimizer.walking import variants, with_inputs
from windrow.plan import nodes

Rule = Callable[[nodes.Node], nodes.Node]
Moves = Callable[[nodes.Node], Iterable[nodes.Node]]
Notes = list[tuple[str, str]]

RULES: tuple[tuple[str, Rule], ...] = (
    ("subqueries merged into the query", merge_subqueries),  # first: the other rules see one join of all inputs
    ("selections pushed down", push_selections),  # before costs are compared: it is always better
    ("negations and semi-joins placed", place_negation.place_negation),
    # Last: δ* needs inputs without negative tuples.
    ("duplicates eliminated below a join", push_distinct.push_distinct),
)
ALTERNATIVES: tuple[tuple[str, Moves], ...] = (
    ("a negation or semi-join one step higher or lower", place_negation.moves),
    ("duplicates eliminated one step lower", push_distinct.moves),
)


def optimize(plan: nodes.Output) -> nodes.Output:
    """An equivalent plan that is estimated to cost no more."""
    return optimized(plan)[0]


def optimized(plan: nodes.Output) -> tuple[nodes.Output, Notes]:
    """The same, and for EXPLAIN what was done and what it is estimated to save."""
    notes: Notes = []
    current: nodes.Node = _inner(plan)
    for told, rule in RULES:
        before, current = current, rule(current)
        if current != before:
            cost, instead = plan_cost(current), plan_cost(before)
            sentence = f"{told}, estimated cost {_amount(cost)} instead of {_amount(instead)} per unit time"
            notes.append(("optimizer", sentence))
    assert isinstance(current, nodes.Output)
    return current, notes + _alternatives(current)


def _alternatives(plan: nodes.Output) -> Notes:
    """What was not done, because it would cost more, or not enough less."""
    notes: Notes = []
    for told, moves in () if reads_non_retroactive(plan) else ALTERNATIVES:
        costs = [plan_cost(one) for one in variants(plan, moves)]
        if costs:
            sentence = f"{told} would cost {_amount(min(costs))} per unit time, as it is {_amount(plan_cost(plan))}"
            notes.append(("alternative", sentence))
    return notes


def _inner(node: nodes.Output) -> nodes.Output:
    """The plan with the subqueries under its windows optimized, each by itself."""

    def change(one: nodes.Node) -> nodes.Node:
        if isinstance(one, nodes.SubqueryWindow):
            assert isinstance(one.input, nodes.Output)
            inner = optimize(one.input)
            return one if inner == one.input else replace(one, input=inner)
        return with_inputs(one, [change(edge) for edge in one.inputs])

    made = change(node)
    assert isinstance(made, nodes.Output)
    return made


def _amount(cost: float) -> str:
    return f"{cost:,.0f}"
