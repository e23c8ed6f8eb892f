"""What a buffer must do, in plain Python: a list of rows, looked through from end to end for every call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.state.buffer import Buffer
from windrow.state.rows import NEVER, Rows

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("b", pa.bool_()), ("n", pa.list_(pa.int8()))])
KEY, WHOLE = 0, 1
NO_LIMIT = 1 << 40

Values = tuple[int | None, str | None, bool | None, tuple[int, ...] | None]


@dataclass
class Held:
    """One row of the model."""

    values: Values
    ts: int
    exp: int
    was: int
    given: bool = False


def rows_of(values: Sequence[Values], ts: Sequence[int], exp: Sequence[int]) -> Rows:
    """A batch as operators hand it on."""
    arrays = [pa.array([row[i] for row in values], field.type) for i, field in enumerate(SCHEMA)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return Rows(batch, np.array(ts, np.int64), np.array(exp, np.int64))


def values_of(batch: pa.RecordBatch) -> list[Values]:
    """The rows of a batch."""
    columns = [column.to_pylist() for column in batch.columns]
    return [(k, s, b, None if n is None else tuple(n)) for k, s, b, n in zip(*columns, strict=True)]


class Model:
    """A buffer in lock-step with a dict of its rows by slot; every call checks what the buffer answers."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.rows: dict[int, Held] = {}
        self._names: list[dict[Any, int]] = [{}, {}]

    def codes(self, values: Sequence[Values], whole: int) -> Any:
        """As `Groups` would number them; a NULL key joins nothing."""
        if whole:
            return np.array([self._names[WHOLE].setdefault(row, len(self._names[WHOLE])) for row in values], np.int32)
        names = self._names[KEY]
        return np.array([-1 if row[0] is None else names.setdefault(row[0], len(names)) for row in values], np.int32)

    def insert(self, values: Sequence[Values], ts: Sequence[int], exp: Sequence[int]) -> None:
        """Rows come."""
        slots = self.buffer.insert(rows_of(values, ts, exp), [self.codes(values, KEY), self.codes(values, WHOLE)])
        assert len(slots) == len(values) and not set(slots.tolist()) & set(self.rows)
        for slot, row, begin, end in zip(slots.tolist(), values, ts, exp, strict=True):
            self.rows[slot] = Held(row, begin, end, end)

    def cut(self, victims: Sequence[int], times: Sequence[int]) -> None:
        """Rows equal to those in these slots end at these times; the buffer may choose other copies."""
        held = [self.rows[slot] for slot in victims]
        values = [row.values for row in held]
        tuples = rows_of(values, times, [row.exp for row in held])
        slots = self.buffer.cut(tuples, WHOLE, self.codes(values, WHOLE)).tolist()
        assert len(set(slots)) == len(slots) == len(victims)
        for slot, wanted, end, time in zip(slots, values, tuples.exp.tolist(), times, strict=True):
            row = self.rows[slot]
            assert (row.values, row.exp, row.was) == (wanted, end, end) and row.ts < time
            row.exp = time

    def probe(self, keys: Sequence[int]) -> None:
        """All pairs of these keys and rows."""
        names = self._names[KEY]
        codes = np.array([names.get(key, 1000 + key) for key in keys], np.int32)
        expected = sorted(
            (i, slot) for i, key in enumerate(keys) for slot, row in self.rows.items() if row.values[0] == key
        )
        which, slots = self.buffer.probe(KEY, codes, max(len(expected), 1))
        assert sorted(zip(which.tolist(), slots.tolist(), strict=True)) == expected

    def expire(self, upto: int) -> None:
        """Rows end, each once."""
        ended = self.buffer.expire(upto).tolist()
        due = [slot for slot, row in self.rows.items() if row.exp <= upto and row.exp != NEVER and not row.given]
        assert sorted(ended) == sorted(due)
        for slot in ended:
            self.rows[slot].given = True
        self.check()

    def settle(self) -> None:
        """What ended is gone."""
        kept = self.buffer.settle()
        self.rows = {slot: row for slot, row in self.rows.items() if not row.given}
        for row in self.rows.values():
            row.was = row.exp
        if kept is not None:
            assert kept.tolist() == sorted(self.rows)
            self.rows = {new: self.rows[old] for new, old in enumerate(kept.tolist())}
        self.check()

    def recode(self) -> None:
        """The owner forgets the codes that no row has, and numbers the others anew, backwards."""
        for index, names in enumerate(self._names):
            live = np.unique(self.buffer.codes(index))
            live = live[live >= 0]
            mapping = np.full(len(names), -1, np.int32)
            mapping[live] = np.arange(len(live))[::-1]
            self.buffer.recode(index, mapping)
            self._names[index] = {name: int(mapping[code]) for name, code in names.items() if mapping[code] >= 0}
        self.check()

    def move(self, buffer: Buffer) -> None:
        """Go on in another buffer, restored from a snapshot of this one."""
        table = self.buffer.snapshot()
        held = values_of(table.select(SCHEMA.names).combine_chunks().to_batches()[0]) if len(table) else []
        buffer.restore(table, [self.codes(held, KEY), self.codes(held, WHOLE)])
        found = [
            Held(values, ts, exp, exp)
            for values, ts, exp in zip(
                values_of(buffer.batch(buffer.scan())),
                buffer.ts[buffer.scan()].tolist(),
                buffer.exp[buffer.scan()].tolist(),
                strict=True,
            )
        ]
        assert sorted(map(repr, found)) == sorted(map(repr, self.rows.values()))
        self.buffer, self.rows = buffer, dict(zip(buffer.scan().tolist(), found, strict=True))
        self.check()

    def check(self) -> None:
        """The buffer holds exactly the rows of the model."""
        slots = self.buffer.scan()
        assert slots.tolist() == sorted(self.rows) and len(self.buffer) == len(self.rows)
        expected = [self.rows[slot] for slot in slots.tolist()]
        rows = self.buffer.rows(slots)
        rows.batch.validate(full=True)
        assert values_of(rows.batch) == [row.values for row in expected]
        assert rows.ts.tolist() == [row.ts for row in expected]
        assert rows.exp.tolist() == [row.exp for row in expected]
        assert self.buffer.was[slots].tolist() == [row.was for row in expected]
