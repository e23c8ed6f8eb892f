"""A column whose values are replaced place by place: for each group its standing answer, for each slot its value.

Numbers, times and decimals are kept as 64-bit words in flat arrays. Other types are kept in Arrow chunks, newest last,
that are merged as they grow; a value that is replaced is dropped when it makes half of them. O(1) per value, amortised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.kernels.changes import Flags, mark_changes
from windrow.kernels.jit import Codes, Ints, frozen

SPARE = 1024
"""So many values that nobody needs are never worth a copy of the others."""


class Column(ABC):
    """Values of one Arrow type at places 0, 1, …"""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""

    @abstractmethod
    def grow(self, size: int) -> None:
        """Make room for places below `size`."""

    @abstractmethod
    def put(self, places: Any, values: pa.Array) -> None:
        """Replace the values at these places."""

    @abstractmethod
    def get(self, places: Any) -> pa.Array:
        """The values at these places; each has been put."""

    @abstractmethod
    def keep(self, live: Ints) -> None:
        """Keep these places only: live[k] becomes k."""

    @abstractmethod
    def mark(self, cell_groups: Codes, values: pa.Array, standing: Flags, changed: Flags) -> None:
        """Mark the cells whose value is not that of the cell before, or of the group's place when it is the first.

        Only places with `standing` have been put.
        """


def column(kind: pa.DataType) -> Column:
    """The column for a type."""
    if columns.is_int_like(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind):
        return FlatColumn(kind)
    return ArrowColumn(kind)


class FlatColumn(Column):
    """One word per value, two for decimals."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._wide = pa.types.is_decimal128(kind)
        self._dtype = np.dtype("f8" if pa.types.is_floating(kind) else "i8")
        """What a word is."""
        bits = 64 if self._wide or pa.types.is_boolean(kind) else kind.bit_width
        self._stored = np.dtype(f"{_letter(kind)}{bits // 8}")
        """What Arrow stores."""
        self._words: Ints = np.zeros((2 if self._wide else 1, 0), np.int64)
        self._null: Flags = np.zeros(0, np.bool_)
        self._nulls = False
        """Whether a NULL was ever put."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._words.nbytes + self._null.nbytes

    def grow(self, size: int) -> None:
        """By doubling, at the caller's."""
        if size > len(self._null):
            words = np.zeros((len(self._words), size), np.int64)
            words[:, : len(self._null)] = self._words
            self._null = np.concatenate([self._null, np.zeros(size - len(self._null), np.bool_)])
            self._words = words

    def put(self, places: Any, values: pa.Array) -> None:
        """Scatter."""
        words, null = self._split(values)
        for mine, new in zip(self._words, words, strict=True):
            mine[places] = new
        self._null[places] = null

    def get(self, places: Any) -> pa.Array:
        """Gather."""
        null = self._null[places] if self._nulls else None
        if null is not None and not null.any():
            null = None
        if self._wide:
            return columns.from_unscaled(self._words[0][places], self._words[1][places], self.kind, null)
        words = self._words[0][places].view(self._dtype)
        if pa.types.is_boolean(self.kind):
            return columns.from_ints(words, self.kind, null)
        stored = words.astype(self._stored, copy=False)
        bitmap = None if null is None else pa.array(~null).buffers()[1]
        return pa.Array.from_buffers(self.kind, len(stored), [bitmap, pa.py_buffer(stored)])

    def keep(self, live: Ints) -> None:
        """Gather."""
        self._words, self._null = np.ascontiguousarray(self._words[:, live]), self._null[live]

    def mark(self, cell_groups: Codes, values: pa.Array, standing: Flags, changed: Flags) -> None:
        """By bits."""
        words, null = self._split(values)
        mark_changes(cell_groups, words, null, self._words, self._null, changed)

    def _split(self, values: pa.Array) -> tuple[Ints, Flags]:
        """Words and NULLs of an array; words of NULLs are anything."""
        many = len(values)
        if self._wide:
            pairs = columns.primitive(values, np.dtype("i8,i8")).view(np.int64).reshape(-1, 2)
            words = frozen(pairs.T)
        elif pa.types.is_boolean(self.kind):
            words = frozen(columns.ints(values).astype(np.int64))[None, :]
        else:
            stored = columns.primitive(values, self._stored)
            words = frozen(stored.astype(self._dtype, copy=False).view(np.int64))[None, :]
        if values.null_count == 0:
            return words, np.zeros(many, np.bool_)
        self._nulls = True
        return words, np.asarray(values.is_null().to_numpy(zero_copy_only=False))


def _letter(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "f"
    return "u" if pa.types.is_unsigned_integer(kind) else "i"


class ArrowColumn(Column):
    """Any type: rows of Arrow chunks, and for each place the number of its row."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._chunks: list[pa.Array] = []
        self._starts: list[int] = [0]
        self._row: Ints = np.full(0, -1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(int(chunk.nbytes) for chunk in self._chunks) + self._row.nbytes

    def grow(self, size: int) -> None:
        """By doubling, at the caller's."""
        if size > len(self._row):
            self._row = np.concatenate([self._row, np.full(size - len(self._row), -1, np.int64)])

    def put(self, places: Any, values: pa.Array) -> None:
        """Append a chunk, and merge those that are not longer."""
        if not len(values):
            return
        if self._starts[-1] + len(values) > 2 * len(self._row) + SPARE:
            self._row[places] = -1
            self._drop_replaced()
        self._row[places] = np.arange(self._starts[-1], self._starts[-1] + len(values))
        chunk = values if values.type == self.kind else values.cast(self.kind)
        while self._chunks and len(self._chunks[-1]) <= len(chunk):
            chunk = pa.concat_arrays([self._chunks.pop(), chunk])
            self._starts.pop()
        self._chunks.append(chunk)
        self._starts.append(self._starts[-1] + len(chunk))

    def get(self, places: Any) -> pa.Array:
        """Take from each chunk, then put in order."""
        return self._rows(self._row[places])

    def _rows(self, rows: Ints) -> pa.Array:
        which = np.searchsorted(self._starts[1:], rows, side="right")
        parts, order = [], []
        for k in np.unique(which):
            here = np.flatnonzero(which == k)
            order.append(here)
            parts.append(self._chunks[k].take(pa.array(rows[here] - self._starts[k])))
        if len(parts) <= 1:
            return parts[0] if parts else pa.array([], self.kind)
        back = np.empty(len(rows), np.int64)
        back[np.concatenate(order)] = np.arange(len(rows))
        return pa.concat_arrays(parts).take(pa.array(back))

    def keep(self, live: Ints) -> None:
        """Only the rows of these places."""
        self._row = self._row[live]
        self._drop_replaced()

    def _drop_replaced(self) -> None:
        used = np.flatnonzero(self._row >= 0)
        values = self._rows(self._row[used])
        self._row[used] = np.arange(len(used))
        self._chunks, self._starts = ([values], [0, len(used)]) if len(used) else ([], [0])

    def mark(self, cell_groups: Codes, values: pa.Array, standing: Flags, changed: Flags) -> None:
        """By value where Arrow compares the type; otherwise every cell counts as changed."""
        first = np.ones(len(cell_groups), np.bool_)
        first[1:] = cell_groups[1:] != cell_groups[:-1]
        changed[1:] |= ~first[1:] & ~_same(values[1:], values[:-1])
        with_row = np.flatnonzero(first & standing[cell_groups])
        before = self.get(cell_groups[with_row])
        changed[with_row] |= ~_same(values.take(pa.array(with_row)), before)


def _same(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Where two arrays have the same value; False where nobody can tell."""
    if pa.types.is_nested(left.type):
        return np.zeros(len(left), np.bool_)
    equal = pc.fill_null(pc.equal(left, right), False)
    both = pc.and_(left.is_null(), right.is_null())
    return np.asarray(pc.or_(equal, both).to_numpy(zero_copy_only=False))
