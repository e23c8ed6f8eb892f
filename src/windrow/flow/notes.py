"""What EXPLAIN says of the operators of a flow, under the symbols that stand in the plan."""

from __future__ import annotations

from windrow.operators.counted import Counted, Rule
from windrow.operators.operator import Operator

_TOPICS = {
    "distinct": "δ distinct",
    "group_by": "γ group",
    "join": "⋈ join",
    "nrr join": "⋈NRR join",
    "top_rows": "↓ order",
}
_COUNTED = {Rule.DISTINCT: "δ distinct", Rule.INTERSECT: "⋉ semi-join", Rule.INTERSECT_ALL: "⋉ semi-join"}


def notes(operators: list[Operator]) -> list[tuple[str, str]]:
    """The topic and the sentence of every operator that keeps something."""
    return [(_topic(one), told) for one in operators if (told := one.describe())]


def _topic(operator: Operator) -> str:
    if isinstance(operator, Counted):
        return _COUNTED.get(operator.rule, "− negation")
    return _TOPICS.get(operator.name, operator.name)
