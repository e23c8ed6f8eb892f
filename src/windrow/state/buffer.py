"""The rows that an operator holds, in flat arrays by slot; how the expired ones are found is left to a discipline.

A row gets the next slot when it comes and keeps it until a compaction. It is *live* until the epoch in which it ends
is settled: operators still read and probe the rows that end in the epoch at hand. Insert, probe, cut and expire work
on batches; a call costs O(rows given and found), amortised, plus what the discipline says for `expire`.

An epoch of an owner, in any order of the first three:

    slots = buffer.insert(came, [codes])          # rows that begin
    buffer.cut(cut, index, codes)                 # negative tuples: rows of earlier epochs end before their time
    which, found = buffer.probe(index, codes, limit)
    ended = buffer.expire(epoch.upto)             # every row that ends in the epoch, cut rows too, once
    kept = buffer.settle()                        # they are gone; not None: slots were numbered anew
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Codes, Ints
from windrow.kernels.state import CUT, DEAD, LIVE, NONE, Flags, bury, due_announced, first_living
from windrow.state.chain import Chain
from windrow.state.columns import Columns, grown
from windrow.state.rows import NEVER, Rows, one_batch

SPARE = 4096
"""Dead slots that are not worth a compaction."""
TS, EXP = "__ts", "__exp"


class NoSuchRow(LookupError):
    """A negative tuple names a row that is not held: the operators below disagree about what came."""


class Buffer(ABC):
    """Rows held by an operator; disciplines differ only in how expired rows are found.

    `ts`, `exp` and `was` have an entry per slot, and may be replaced by any call that changes the buffer: read them
    anew after it. `was` is what `exp` was before the cuts of this epoch.
    """

    def __init__(self, schema: pa.Schema, indexes: int = 0) -> None:
        self.schema = schema
        self.indexes = indexes
        self._clear()

    def _clear(self) -> None:
        self.ts: Ints = np.empty(0, np.int64)
        self.exp: Ints = np.empty(0, np.int64)
        self.was: Ints = np.empty(0, np.int64)
        self._state: Flags = np.empty(0, np.uint8)
        self._columns = Columns(self.schema)
        self._chains = [Chain() for _ in range(self.indexes)]
        self._used = 0  # slots given out
        self._live = 0
        self._floor = 0  # no slot below is live
        self._mark = 0  # slots from here on came in this epoch
        self._announced: Ints = np.empty(0, np.int64)  # slots that end by a cut, not yet given by `expire`
        self._waiting = 0
        self._ended: list[Ints] = []  # given by `expire` in this epoch

    def __len__(self) -> int:
        return self._live

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        slots = (self.ts, self.exp, self.was, self._state, self._announced)
        return sum(array.nbytes for array in slots) + self._columns.nbytes + sum(c.nbytes for c in self._chains)

    @abstractmethod
    def describe(self) -> str:
        """For EXPLAIN: the structure in which rows wait for their end."""

    def insert(self, rows: Rows, codes: Sequence[Codes] = ()) -> Ints:
        """Hold these rows, with a code for each in every index; returns their slots."""
        base, stop = self._used, self._used + len(rows)
        if stop > len(self.ts):
            self.ts = grown(self.ts, base, stop)
            self.exp = grown(self.exp, base, stop)
            self.was = grown(self.was, base, stop)
            self._state = grown(self._state, base, stop)
        self.ts[base:stop] = rows.ts
        self.exp[base:stop] = rows.exp
        self.was[base:stop] = rows.exp
        self._state[base:stop] = LIVE
        self._columns.append(rows.batch)
        for chain, given in zip(self._chains, codes, strict=True):
            chain.link(given, base)
        self._used = stop
        self._live += len(rows)
        self._came(base, stop)
        return np.arange(base, stop)

    def probe(self, index: int, codes: Codes, limit: int) -> tuple[Ints, Ints]:
        """(which of the codes, slot) of all live rows with these codes; more pairs than `limit` raise TooMany."""
        holes = self._used - self._floor > self._live
        return self._chains[index].probe(codes, limit, self._state, self._floor, holes)

    def cut(self, rows: Rows, index: int, codes: Codes) -> Ints:
        """Negative tuples: for each, one live row with its code and its exp ends at its ts; returns their slots.

        `index` has a code per different row. Where one row comes in many copies with different ends, let its code
        differ with `exp` too: a walk looks at all copies with one code.
        """
        slots = self._chains[index].cut(
            codes, rows.ts, rows.exp, self.ts, self.exp, self.was, self._state, self._floor, self._mark
        )
        if len(slots) and slots.min() == NONE:
            place = int(np.argmin(slots))
            raise NoSuchRow(
                f"expected a row with code {int(codes[place])} in index {index} that began before {int(rows.ts[place])}"
                f" and was to end at {_instant(int(rows.exp[place]))}, found none among {len(self)} rows of "
                f"{type(self).__name__}; this is an error in Windrow, please report it with the query"
            )
        self._announce(slots[self._state[slots] == CUT])
        return slots

    def _announce(self, slots: Ints) -> None:
        """These slots have an end that the discipline does not know."""
        self._announced = grown(self._announced, self._waiting, self._waiting + len(slots))
        self._announced[self._waiting : self._waiting + len(slots)] = slots
        self._waiting += len(slots)

    def expire(self, upto: int) -> Ints:
        """Slots of the rows with exp <= upto that no earlier call gave; they are readable until `settle`."""
        upto = min(upto, NEVER - 1)
        ended = self._due(upto)
        if self._waiting:
            cut, self._waiting = due_announced(self._announced, self._waiting, upto, self.exp, self._state)
            ended = np.concatenate((ended, cut))
        if len(ended):
            self._ended.append(ended)
        return ended

    def settle(self) -> Ints | None:
        """The epoch is over: rows that `expire` gave are gone, and `was` is `exp` again.

        Once most slots are dead the others are numbered anew: slot k was kept[k] before. Returns `kept`, else None.
        """
        for slots in self._ended:
            bury(slots, self._state)
            self._live -= len(slots)
        if self._waiting:
            slots = self._announced[: self._waiting]
            self.was[slots] = self.exp[slots]
        self._ended = []
        self._floor = first_living(self._floor, self._used, self._state)
        self._mark = self._used
        if self._used - self._live > self._live + SPARE:
            return self._compact()
        return None

    def _compact(self) -> Ints:
        kept = self.scan()
        self.ts, self.exp, self.was = self.ts[kept], self.exp[kept], self.was[kept]
        self._state = self._state[kept]
        self._columns.keep(kept)
        for chain in self._chains:
            chain.keep(kept)
        waiting = np.searchsorted(kept, self._announced[: self._waiting])
        self._announced = np.asarray(waiting, np.int64)
        self._used = self._mark = len(kept)
        self._floor = 0
        self._renumbered()
        return kept

    def rows(self, slots: Ints) -> Rows:
        """Columns and lifetimes of these slots."""
        return Rows(self.batch(slots), self.ts[slots], self.exp[slots])

    def batch(self, slots: Ints, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """The columns of these slots, one after the other; with `names` only these."""
        return self._columns.take(slots, names)

    def scan(self) -> Ints:
        """The slots of all live rows, in the order in which they came."""
        return self._floor + np.flatnonzero(self._state[self._floor : self._used] != DEAD)

    def codes(self, index: int) -> Codes:
        """The codes of all live rows, as `scan` gives them."""
        return self._chains[index].codes(self.scan())

    def coded(self, index: int, slots: Ints) -> Codes:
        """The codes of these live slots."""
        return self._chains[index].codes(slots)

    def recode(self, index: int, mapping: Codes) -> None:
        """Code c becomes mapping[c], for all codes of live rows: their owner has numbered its groups anew."""
        self._chains[index].recode(mapping, self._used, self._state)

    def snapshot(self) -> pa.Table:
        """All live rows with their lifetimes, after `settle`."""
        rows = self.rows(self.scan())
        table = pa.Table.from_batches([rows.batch])
        return table.append_column(TS, pa.array(rows.ts)).append_column(EXP, pa.array(rows.exp))

    def restore(self, table: pa.Table, codes: Sequence[Codes] = ()) -> None:
        """Hold exactly the rows of a snapshot, with a code for each in every index."""
        self._clear()
        self.insert(rows_of(table, self.schema), codes)
        self._mark = self._used

    @abstractmethod
    def _came(self, base: int, stop: int) -> None:
        """Slots base … stop-1 have come."""

    @abstractmethod
    def _due(self, upto: int) -> Ints:
        """The LIVE slots with exp <= upto, which become ENDED."""

    @abstractmethod
    def _renumbered(self) -> None:
        """All slots have new numbers, in the same order."""


def rows_of(table: pa.Table, schema: pa.Schema) -> Rows:
    """The rows of a snapshot."""
    # By place: SELECT a, a names two columns alike.
    batch = one_batch(table.select(list(range(len(schema)))).to_batches(), schema)
    return Rows(batch, *(np.array(table[name].to_numpy()) for name in (TS, EXP)))


def _instant(exp: int) -> str:
    return "an unknown instant" if exp == NEVER else str(exp)
