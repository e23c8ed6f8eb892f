"""Rows with lifetimes for tests: random ones, cut into epochs as an operator gets them, and what an output means."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from windrow.operators.operator import Operator
from windrow.state.rows import NEVER, Delta, Epoch, Rows

Row: TypeAlias = tuple[Any, ...]
HORIZON = 40
"""Random rows come at the instants 1 … HORIZON."""

SCHEMAS = [
    pa.schema([("a", pa.int64())]),
    pa.schema([("a", pa.string())]),
    pa.schema([("a", pa.float64()), ("b", pa.int32())]),
    pa.schema([("a", pa.string()), ("b", pa.bool_()), ("a", pa.decimal128(38, 2))]),
]
FEW_VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [None, -(1 << 63), 0, 5, (1 << 63) - 1],
    pa.int32(): [None, 1, 2],
    pa.string(): [None, "", "a", "ä"],
    pa.float64(): [None, math.nan, 0.0, -0.0, -math.inf],
    pa.bool_(): [None, True, False],
    pa.decimal128(38, 2): [None, 0, 10**20],
}


@dataclass(frozen=True)
class Life:
    """A row that comes at `ts` and says it will end at `exp`, but ends at `end`."""

    row: Row
    ts: int
    exp: int
    end: int


@st.composite
def lives(draw: st.DrawFn, schema: pa.Schema, *, cut: bool) -> list[Life]:
    """Few different rows, many ties, bursts; with `cut`, ends that come before they were due, or were not known."""
    found: list[Life] = []
    rows = st.tuples(*(st.sampled_from(FEW_VALUES[kind]) for kind in schema.types))
    for _ in range(draw(st.integers(0, 12))):
        row, ts = draw(rows), draw(st.integers(1, HORIZON))
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 5]))):
            exp = draw(st.sampled_from([NEVER, *(ts + length for length in (1, 2, 3, 7, 30))]))
            end = draw(st.integers(ts + 1, exp if exp < NEVER else HORIZON + 10)) if cut else exp
            found.append(Life(row, ts, exp, end))
    return draw(st.permutations(found))


@st.composite
def epochs(draw: st.DrawFn) -> list[Epoch]:
    """All time up to after the last random row, in any pieces."""
    last = HORIZON + 50
    pieces = draw(st.sampled_from(["all", "each", "some"]))
    inner = {"all": set[int](), "each": set(range(1, last))}.get(pieces)
    if inner is None:
        inner = draw(st.sets(st.integers(1, last - 1), max_size=8))
    edges = [0, *sorted(inner), last]
    return [Epoch(since, upto) for since, upto in pairwise(edges)]


def random_lives(
    seed: int, many: int, rows: Callable[[random.Random], Row], strict: float, span: int = HORIZON
) -> list[Life]:
    """Many at once, in the order of time: windows, any end, none; a share of the rows is cut before its end."""
    chance = random.Random(seed)
    kind = chance.choice(["window", "any", "never", "mixed"])
    found = []
    for _ in range(many):
        ts = chance.randint(1, span)
        exp = {"window": ts + 7, "any": ts + chance.randint(1, 20), "never": NEVER}.get(
            kind, chance.choice([NEVER, ts + chance.randint(1, 30), ts + 5])
        )
        end = min(exp, ts + chance.randint(1, 15)) if chance.random() < strict else exp
        found.append(Life(rows(chance), ts, exp, end))
    return sorted(found, key=lambda one: one.ts)


def random_edges(seed: int, span: int = 2 * HORIZON) -> list[int]:
    """Ends of epochs: few, many or one per instant."""
    chance = random.Random(seed)
    step = chance.choice([1, 3, 10, 100])
    edges = [0]
    while edges[-1] < span:
        edges.append(edges[-1] + chance.randint(1, step))
    return edges


def deltas(lives: Sequence[Life], edges: Sequence[int], schema: pa.Schema) -> Iterator[tuple[Delta, Epoch]]:
    """What an operator gets in each epoch between successive edges."""
    for epoch in (Epoch(since, upto) for since, upto in pairwise(edges)):
        yield delta(lives, epoch, schema), epoch


def delta(lives: Sequence[Life], epoch: Epoch, schema: pa.Schema) -> Delta:
    """What an operator gets of these rows in one epoch."""
    came: list[tuple[Row, int, int]] = []
    cut: list[tuple[Row, int, int]] = []
    for life in lives:
        if epoch.since < life.ts <= epoch.upto:
            came.append((life.row, life.ts, life.end if life.end <= epoch.upto else life.exp))
        elif epoch.since < life.end <= epoch.upto and life.end < life.exp:
            cut.append((life.row, life.end, life.exp))
    return Delta(rows_of(came, schema), rows_of(cut, schema))


def rows_of(rows: Sequence[tuple[Row, int, int]], schema: pa.Schema) -> Rows:
    """Rows from (columns, ts, exp)."""
    arrays = [pa.array([row[i] for row, _, _ in rows], kind) for i, kind in enumerate(schema.types)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    ts, exp = ([one[i] for one in rows] for i in (1, 2))
    return Rows(batch, np.array(ts, np.int64), np.array(exp, np.int64))


def plain(value: Any) -> Any:
    """A value that compares as SQL groups do, and can be hashed."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return repr(value) if isinstance(value, list) else value


def at(lives: Sequence[Life], instant: int) -> list[Row]:
    """The rows at an instant."""
    return [life.row for life in lives if life.ts <= instant < life.end]


def present(lives: Sequence[Life], instant: int) -> Counter[Row]:
    """The relation at an instant."""
    return Counter(tuple(map(plain, row)) for row in at(lives, instant))


class Output:
    """Reads the output of an operator, holds it to the contract, and knows the relation at every instant."""

    def __init__(self) -> None:
        self.lives: list[tuple[Row, int, int]] = []
        """Each row with its begin and its end."""
        self._open: dict[tuple[Row, int], list[int]] = {}

    def add(self, delta: Delta, epoch: Epoch) -> None:
        """Take in one epoch."""
        for row, ts, exp in tuples(delta.cut):
            assert epoch.since < ts <= epoch.upto
            assert ts < exp
            # Only rows of earlier epochs are here yet: a row is never cut in the epoch in which it comes.
            places = self._open.get((row, exp), [])
            assert places, f"a cut row that was never there: {row}"
            place = places.pop()
            self.lives[place] = row, self.lives[place][1], ts
        for row, ts, exp in tuples(delta.came):
            assert epoch.since < ts <= epoch.upto
            assert ts < exp
            self._open.setdefault((row, exp), []).append(len(self.lives))
            self.lives.append((row, ts, exp))

    def at(self, instant: int) -> Counter[Row]:
        """The relation at an instant."""
        return Counter(row for row, ts, end in self.lives if ts <= instant < end)


def run(operator: Operator, steps: Sequence[tuple[Delta, Epoch]]) -> Output:
    """All epochs through an operator."""
    output = Output()
    for delta, epoch in steps:
        output.add(operator.step([delta], epoch), epoch)
    return output


def tuples(rows: Rows) -> list[tuple[Row, int, int]]:
    """(columns, ts, exp) of each row."""
    columns = [[plain(value) for value in column.to_pylist()] for column in rows.batch.columns]
    return list(zip(zip(*columns, strict=True), rows.ts.tolist(), rows.exp.tolist(), strict=True))


def restarted(operator: Operator, fresh: Operator) -> Operator:
    """`fresh` with the state of `operator`, which went through bytes."""
    meta, tables = operator.snapshot()
    read = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        read[name] = pa.ipc.open_stream(sink.getvalue()).read_all()
    fresh.restore(meta, read)
    assert fresh.rows <= operator.rows  # what cancels out need not be written
    return fresh


def numbers(schema: pa.Schema, keys: Any, ts: Any, exp: Any) -> Rows:
    """Rows of one int64 or string column."""
    values = pa.array(keys)
    return Rows(pa.RecordBatch.from_arrays([values.cast(schema.field(0).type)], schema=schema), ts, exp)
