"""All sharing rules, in the order of the thesis."""

from __future__ import annotations

from windrow.sharing.rules.computation import CS1, CS2, CS3, CS4, CS5, CS6, CS7, CS8
from windrow.sharing.rules.rule import Rule
from windrow.sharing.rules.state import SS1, SS2, SS3, SS4, RollUp

RULES: tuple[Rule, ...] = (
    SS1(), SS2(), SS3(), SS4(), RollUp(), CS1(), CS2(), CS3(), CS4(), CS5(), CS6(), CS7(), CS8()
)  # fmt: skip
"""A new rule is a class with a condition, and a line here."""

BY_NAME = {rule.name: rule for rule in RULES}
