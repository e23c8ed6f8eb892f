"""Rows that an operator holds until they end: slots in flat arrays, found by their end or, when cut, by what they are.

A row that comes takes a free slot. Rows with a known end leave when it has come (`due`). A negative tuple finds a row
with equal columns and end through lists of equal rows; these are made when the first one comes, so that inputs without
negative tuples do not pay for them. A row that was cut keeps its slot until its known end, where nothing happens.
O(1) per row, amortised; space: the rows whose end is still to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.changes import Flags
from windrow.kernels.jit import Codes, Ints
from windrow.kernels.lists import NONE
from windrow.state.lists import Lists, resized
from windrow.state.schedule import Schedule
from windrow.state.slot_column import Column, column
from windrow.synopses.groups import Groups

FEW = 1024


class HeldRows:
    """Columns of some types, a group (any int32 of the owner's), an end and a sign for every slot."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self.columns: list[Column] = [column(kind) for kind in kinds]
        self.group: Codes = np.zeros(0, np.int32)
        self.exp: Ints = np.zeros(0, np.int64)
        self.sign: Any = np.zeros(0, np.int8)
        self.used: Flags = np.zeros(0, np.bool_)
        """Slots in use, also by rows that were cut."""
        self.alive: Flags = np.zeros(0, np.bool_)
        """Slots whose row has not ended."""
        self._free: Ints = np.zeros(0, np.int64)
        self._frees = 0
        self._rows = 0
        self._ends = Schedule()
        self._equal: Lists | None = None
        self._identity: Groups | None = None

    def __len__(self) -> int:
        return self._rows

    @property
    def capacity(self) -> int:
        """All slots, free or not."""
        return len(self.exp)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self.group, self.exp, self.sign, self.used, self.alive, self._free)
        total = sum(array.nbytes for array in arrays) + sum(one.nbytes for one in self.columns) + self._ends.nbytes
        if self._equal is not None and self._identity is not None:
            total += self._equal.nbytes + self._identity.nbytes
        return int(total)

    def insert(self, groups: Codes, values: Sequence[pa.Array], exp: Ints, sign: int = 1) -> Ints:
        """Hold these rows; gives their slots. Those with an end are due then."""
        many = len(exp)
        if many > self._frees:
            self._grow(many)
        self._frees -= many
        slots = self._free[self._frees : self._frees + many].copy()
        self._rows += many
        self.group[slots] = groups
        self.exp[slots] = exp
        self.sign[slots] = sign
        self.used[slots] = True
        self.alive[slots] = True
        for one, array in zip(self.columns, values, strict=True):
            one.put(slots, array)
        self._ends.add(exp, slots)
        if self._equal is not None:
            self._link(slots, groups, values, exp)
        return slots

    def due(self, upto: int) -> tuple[Ints, Ints, Ints]:
        """(times, slots) of the rows that end at or before `upto`; and slots of rows that were cut, to be freed."""
        times, slots, _ = self._ends.due(upto)
        if not len(slots):
            return times, slots, slots
        alive = self.alive[slots]
        if not alive.all():
            gone = slots[~alive]
            times, slots = times[alive], slots[alive]
        else:
            gone = slots[:0]
        self.alive[slots] = False
        if self._equal is not None:
            self._equal.remove(slots)
        return times, slots, gone

    def cut(self, groups: Codes, values: Sequence[pa.Array], exp: Ints) -> Ints:
        """The slots of rows that are equal to these, one each; they are not alive any more."""
        if self._equal is None:
            self._identify()
        assert self._equal is not None
        codes = self._codes(groups, values, exp)
        self._equal.grow(self.capacity, len(self._identity or ()))
        slots = self._equal.take(codes)
        if len(slots) and int(slots.min()) == NONE:
            raise RuntimeError(f"{int((slots == NONE).sum())} negative tuples for rows that are not held")
        self.alive[slots] = False
        return slots

    def free(self, slots: Ints) -> None:
        """These rows have ended, and nobody needs them any more; those that were cut before their end stay."""
        stop = self._frees + len(slots)
        self._free[self._frees : stop] = slots
        self._frees = stop
        self._rows -= len(slots)
        self.used[slots] = False
        if self._identity is not None and len(self._identity) > 4 * self._rows + FEW:
            self._equal = self._identity = None  # made anew, of the rows that are left, when needed

    def values(self, places: Ints, which: Sequence[int] | None = None) -> list[pa.Array]:
        """The columns of some slots."""
        chosen = range(len(self.columns)) if which is None else which
        return [self.columns[k].get(places) for k in chosen]

    def regroup(self, numbers: Codes) -> None:
        """Group g becomes numbers[g]."""
        used = np.flatnonzero(self.used)
        self.group[used] = numbers[self.group[used]]
        self._equal = self._identity = None

    # ---- snapshots --------------------------------------------------------------------------------------------------

    def snapshot(self) -> pa.Table:
        """The rows that are used, in the order of their slots."""
        slots = np.flatnonzero(self.used)
        arrays = [self.group[slots], self.exp[slots], self.sign[slots], self.alive[slots], *self.values(slots)]
        names = ["group", "exp", "sign", "alive", *(str(k) for k in range(len(self.columns)))]
        return pa.table([pa.array(array) for array in arrays], names)

    def restore(self, table: pa.Table) -> Ints:
        """Become what `snapshot` gave; the slots of the rows that live."""
        group, exp, sign, alive, *values = (one.combine_chunks() for one in table.columns)
        slots = self.insert(np.asarray(group), [_whole(one) for one in values], np.asarray(exp))
        self.sign[slots] = np.asarray(sign)
        self.alive[slots] = alive.to_numpy(zero_copy_only=False)
        return slots[self.alive[slots]]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _grow(self, many: int) -> None:
        old = self.capacity
        size = max(2 * old, old + many, 64)
        for name in ("group", "exp", "sign", "used", "alive"):
            setattr(self, name, resized(getattr(self, name), size, 0))
        # The lowest new slot is taken first.
        self._free = np.concatenate([np.arange(size - 1, old - 1, -1), self._free[: self._frees]])
        self._free = resized(self._free, size, 0)
        self._frees += size - old
        for one in self.columns:
            one.grow(size)
        if self._equal is not None:
            self._equal.grow(size, 0)

    def _identify(self) -> None:
        self._equal = Lists()
        self._identity = Groups([pa.int64(), pa.int32(), *(one.kind for one in self.columns)])
        slots = np.flatnonzero(self.alive)
        self._equal.grow(self.capacity, 0)
        if len(slots):
            self._link(slots, self.group[slots], self.values(slots), self.exp[slots])

    def _link(self, slots: Ints, groups: Codes, values: Sequence[pa.Array], exp: Ints) -> None:
        assert self._equal is not None and self._identity is not None
        codes = self._codes(groups, values, exp)
        self._equal.grow(self.capacity, len(self._identity))
        self._equal.append(slots, codes)

    def _codes(self, groups: Codes, values: Sequence[pa.Array], exp: Ints) -> Codes:
        assert self._identity is not None
        return np.array(self._identity.encode([pa.array(exp), pa.array(groups), *values]), np.int32)


def _whole(array: Any) -> pa.Array:
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
