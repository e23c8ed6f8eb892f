"""What a multi-way join compares, and how its inputs are probed.

Columns that must be equal are of one *key*: with p.a = q.a and q.a = r.a the new rows of p can probe r at once. So
every order of the inputs can use an index, as for the joins on a common attribute of thesis chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.expressions import Program

Order = Sequence[int]


@dataclass(frozen=True)
class Equality:
    """left = right, each over the columns of one input, both of one type."""

    inputs: tuple[int, int]
    programs: tuple[Program, Program]
    text: str = ""

    def side(self, number: int) -> Program:
        """The program over the columns of that input."""
        return self.programs[self.inputs.index(number)]


@dataclass(frozen=True)
class Residual:
    """Any other predicate, and the inputs whose columns it needs."""

    inputs: frozenset[int]
    program: Program


@dataclass(frozen=True)
class Step:
    """Probe `target` by these keys, with the values that the bound inputs `sources` have; check these residuals."""

    target: int
    keys: tuple[int, ...]
    sources: tuple[int, ...]
    residuals: tuple[int, ...]


class Keys:
    """The keys of a join: for each input, the programs over its columns that belong to each key."""

    def __init__(self, count: int, equalities: Sequence[Equality]) -> None:
        homes: dict[tuple[int, Program], int] = {}
        for one in equalities:
            left, right = zip(one.inputs, one.programs, strict=True)
            first = homes.setdefault(left, len(homes))
            second = homes.setdefault(right, len(homes))
            homes = {place: first if key == second else key for place, key in homes.items()}
        numbers = {key: number for number, key in enumerate(dict.fromkeys(homes.values()))}
        self.of: list[dict[int, list[Program]]] = [{} for _ in range(count)]
        self.types: dict[int, pa.DataType] = {}
        for (number, program), key in homes.items():
            self.of[number].setdefault(numbers[key], []).append(program)
            self.types[numbers[key]] = program.type

    def program(self, number: int, key: int) -> Program:
        """The value of the key in the rows of that input; where there are several, rows that match have them equal."""
        return self.of[number][key][0]

    def same(self, number: int) -> list[list[Program]]:
        """Programs over one input that must be equal to each other."""
        return [programs for programs in self.of[number].values() if len(programs) > 1]


def planned(keys: Keys, residuals: Sequence[Residual], start: int, order: Order) -> list[Step]:
    """How the new rows of input `start` meet the others in this order."""
    bound = [start]
    steps = []
    for target in order:
        known = [(key, [one for one in bound if key in keys.of[one]]) for key in sorted(keys.of[target])]
        probed = [(key, holders[0]) for key, holders in known if holders]
        first = len(bound) == 1
        bound.append(target)
        here = tuple(
            place
            for place, one in enumerate(residuals)
            if one.inputs <= set(bound) and (target in one.inputs or (first and one.inputs <= {start}))
        )
        steps.append(Step(target, tuple(key for key, _ in probed), tuple(holder for _, holder in probed), here))
    return steps
