"""Random rows with lifetimes, cut into epochs, and the relation that an operator's output is at an instant."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.operators.operator import Operator
from windrow.state.rows import NEVER, Delta, Epoch, Rows

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Life:
    """A row that begins at `ts`, was said to end at `said` when it came, and ends at `exp`."""

    row: Row
    ts: int
    said: int
    exp: int


def rows_of(lives: Sequence[tuple[Row, int, int]], schema: pa.Schema) -> Rows:
    """A batch of (row, ts, exp)."""
    columns = zip(*(row for row, _, _ in lives), strict=True) if lives else [[] for _ in schema]
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    ts, exp = (np.array([one[k] for one in lives], np.int64) for k in (1, 2))
    return Rows(batch, ts, exp)


def deltas(lives: Sequence[Life], edges: Sequence[int], schema: pa.Schema) -> Iterator[tuple[Delta, Epoch]]:
    """The changes of each epoch between successive edges."""
    for since, upto in pairwise(edges):
        came = [(one.row, one.ts, one.exp if one.exp <= upto else one.said) for one in lives if since < one.ts <= upto]
        cut = [
            (one.row, one.exp, one.said) for one in lives if one.ts <= since < one.exp <= upto and one.said != one.exp
        ]
        yield Delta(rows_of(came, schema), rows_of(cut, schema)), Epoch(since, upto)


def at(lives: Sequence[Life], tau: int) -> list[Row]:
    """The rows at an instant."""
    return [one.row for one in lives if one.ts <= tau < one.exp]


def same(value: Any) -> Any:
    """A value that can be compared and hashed: NaN equals itself, doubles count to 11 digits."""
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return value + 0.0 if math.isinf(value) or value == 0 else float(f"{value:.11g}")
    if isinstance(value, list):
        return tuple(same(one) for one in value)
    if isinstance(value, dict):
        return tuple(sorted((key, same(one)) for key, one in value.items()))
    return value


class Output:
    """What an operator's deltas make: checks the contract of cut rows, and knows the relation at every instant."""

    def __init__(self) -> None:
        self.lives: list[list[Any]] = []
        self._open: dict[Row, list[int]] = {}

    def add(self, delta: Delta, epoch: Epoch) -> None:
        for row, ts, exp in _listed(delta.cut):
            assert epoch.since < ts <= epoch.upto
            places = self._open.get((*row, exp), [])
            assert places, f"a cut row that was never there: {row}"
            self.lives[places.pop()][2] = ts
        for row, ts, exp in _listed(delta.came):
            assert epoch.since < ts <= epoch.upto and ts < exp
            if exp > epoch.upto:
                self._open.setdefault((*row, exp), []).append(len(self.lives))
            self.lives.append([row, ts, exp])

    def at(self, tau: int) -> Counter[Row]:
        return Counter(tuple(same(value) for value in row) for row, ts, exp in self.lives if ts <= tau < exp)


def _listed(rows: Rows) -> Iterator[tuple[Row, int, int]]:
    columns = [column.to_pylist() for column in rows.batch.columns]
    for k in range(len(rows)):
        row = tuple(
            "nan"
            if isinstance(column[k], float) and math.isnan(column[k])
            else repr(column[k])
            if isinstance(column[k], list)
            else column[k]
            for column in columns
        )
        yield row, int(rows.ts[k]), int(rows.exp[k])


def random_lives(seed: int, many: int, rows: Any, strict: float, span: int = 40) -> list[Life]:
    """Lifetimes of different kinds: windows, any end, none; a share of the rows is cut before its end."""
    chance = random.Random(seed)
    kind = chance.choice(["window", "any", "never", "mixed"])
    found = []
    for _ in range(many):
        ts = chance.randint(1, span)
        said = {"window": ts + 7, "any": ts + chance.randint(1, 20), "never": NEVER}.get(
            kind, chance.choice([NEVER, ts + chance.randint(1, 30), ts + 5])
        )
        exp = said
        if chance.random() < strict:
            exp = min(said, ts + chance.randint(1, 15))
        found.append(Life(rows(chance), ts, said, exp))
    found.sort(key=lambda one: one.ts)
    return found


def random_edges(seed: int, span: int = 80) -> list[int]:
    """Ends of epochs: few, many or one per instant."""
    chance = random.Random(seed)
    step = chance.choice([1, 3, 10, 100])
    edges = [0]
    while edges[-1] < span:
        edges.append(edges[-1] + chance.randint(1, step))
    return edges


def run(operator: Operator, steps: Sequence[tuple[Delta, Epoch]]) -> Output:
    """All epochs through an operator."""
    output = Output()
    for delta, epoch in steps:
        output.add(operator.step([delta], epoch), epoch)
    return output
