"""All rules in one table: the name of a call → how it becomes a Program."""

from __future__ import annotations

from windrow.expressions import arithmetic, casts, choice, comparison, logic, numbers, patterns, text, time
from windrow.expressions.compiler import Rule

RULES: dict[str, Rule] = {
    "paren": lambda compiler, site, arguments: arguments[0],
    **arithmetic.RULES,
    **numbers.RULES,
    **comparison.RULES,
    **logic.RULES,
    **choice.RULES,
    **casts.RULES,
    **text.RULES,
    **patterns.RULES,
    **time.RULES,
}
