"""The columns of rows that are held: appended batch by batch, read by slot, each column one run of memory.

Reading rows by slot from a list of Arrow batches costs a search per row, or a copy of everything per read. Here each
column grows by doubling, so a row is copied O(1) times on average, and reading costs what is read, whether the rows
came one by one or by the million. Numbers, times and truth values are in NumPy arrays, texts in one run of bytes;
nested types stay in Arrow, merged so that there are never more than log(rows) pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import QueryError
from windrow.kernels.jit import Ints, frozen
from windrow.kernels.memory import pooled
from windrow.kernels.texts import copy_texts, text_offsets

FEW = 64
MANY = 1 << 14
"""Rows from which on memory that is used again is faster than fresh memory."""
LONGEST = (1 << 31) - 1
"""Bytes of text that an Arrow array with 32-bit offsets can hold."""


def grown(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """The array with room for `size` entries, at least twice the room it had; the first `used` are kept."""
    if size <= len(array):
        return array
    more = np.empty(max(size, 2 * len(array), FEW), array.dtype)
    more[:used] = array[:used]
    return more


class Column(ABC):
    """One column, by slot."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.used = 0
        self._valid: NDArray[np.bool_] | None = None  # until a NULL comes

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return 0 if self._valid is None else self._valid.nbytes

    def append(self, values: pa.Array) -> None:
        """The next slots."""
        if values.null_count and self._valid is None:
            self._valid = np.ones(self.used + len(values), np.bool_)
        if self._valid is not None:
            self._valid = grown(self._valid, self.used, self.used + len(values))
            valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else True
            self._valid[self.used : self.used + len(values)] = valid
        self._append(values)
        self.used += len(values)

    def keep(self, slots: Ints) -> None:
        """Forget all slots but these, which are numbered anew."""
        if self._valid is not None:
            self._valid = self._valid[slots]
            if self._valid.all():
                self._valid = None
        self._keep(slots)
        self.used = len(slots)

    @abstractmethod
    def take(self, slots: Ints) -> pa.Array:
        """The values of these slots."""

    @abstractmethod
    def _append(self, values: pa.Array) -> None: ...

    @abstractmethod
    def _keep(self, slots: Ints) -> None: ...

    def _validity(self, slots: Ints) -> pa.Buffer | None:
        if self._valid is None:
            return None
        return pa.py_buffer(np.packbits(self._valid[slots], bitorder="little"))


class Fixed(Column):
    """Values of one width."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        width = kind.bit_width // 8
        self._values: NDArray[Any] = np.empty(0, f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + self._values.nbytes

    def _append(self, values: pa.Array) -> None:
        self._values = grown(self._values, self.used, self.used + len(values))
        if len(values):
            width = self._values.itemsize
            data = np.frombuffer(values.buffers()[1], self._values.dtype, len(values), values.offset * width)
            self._values[self.used : self.used + len(values)] = data

    def _keep(self, slots: Ints) -> None:
        self._values = self._values[slots]

    def take(self, slots: Ints) -> pa.Array:
        """The values of these slots."""
        if len(slots) < MANY:
            values = self._values[slots]
        else:
            values = pooled(len(slots), self._values.dtype)
            np.take(self._values, slots, out=values, mode="clip")  # any other mode copies twice
        return pa.Array.from_buffers(self.kind, len(slots), [self._validity(slots), pa.py_buffer(values)])


class Truth(Column):
    """Truth values, a byte each."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._values: NDArray[np.bool_] = np.empty(0, np.bool_)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + self._values.nbytes

    def _append(self, values: pa.Array) -> None:
        self._values = grown(self._values, self.used, self.used + len(values))
        plain = values.fill_null(False) if values.null_count else values
        self._values[self.used : self.used + len(values)] = plain.to_numpy(zero_copy_only=False)

    def _keep(self, slots: Ints) -> None:
        self._values = self._values[slots]

    def take(self, slots: Ints) -> pa.Array:
        """The values of these slots."""
        bits = pa.py_buffer(np.packbits(self._values[slots], bitorder="little"))
        return pa.Array.from_buffers(self.kind, len(slots), [self._validity(slots), bits])


class Text(Column):
    """Texts or bytes: where each begins, and all their bytes."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        self._offset: type[np.int32] | type[np.int64] = np.int64 if wide else np.int32
        self._starts: Ints = np.zeros(1, np.int64)
        self._data: NDArray[np.uint8] = np.empty(0, np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + self._starts.nbytes + self._data.nbytes

    def _append(self, values: pa.Array) -> None:
        if not len(values):
            return
        _, places, data = values.buffers()
        width = np.dtype(self._offset).itemsize
        offsets = np.frombuffer(places, self._offset, len(values) + 1, values.offset * width)
        begin, size = int(offsets[0]), int(offsets[-1]) - int(offsets[0])
        bytes_used = int(self._starts[self.used])
        self._starts = grown(self._starts, self.used + 1, self.used + len(values) + 1)
        np.add(offsets[1:], bytes_used - begin, out=self._starts[self.used + 1 : self.used + len(values) + 1])
        self._data = grown(self._data, bytes_used, bytes_used + size)
        if size:
            self._data[bytes_used : bytes_used + size] = np.frombuffer(data, np.uint8, size, begin)

    def _keep(self, slots: Ints) -> None:
        self._starts, self._data = self._chosen(slots, np.int64)

    def take(self, slots: Ints) -> pa.Array:
        """The values of these slots."""
        offsets, data = self._chosen(slots, self._offset)
        buffers = [self._validity(slots), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(self.kind, len(slots), buffers)

    def _chosen(self, slots: Ints, offset: Any) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        slots = frozen(slots)
        offsets = np.empty(len(slots) + 1, offset)
        size = text_offsets(self._starts, slots, offsets)
        if size > LONGEST and offset == np.int32:
            raise QueryError(
                f"expected at most {LONGEST} bytes of text in one batch of rows, found {size}; let time pass in "
                "smaller steps, or leave long texts out of the query"
            )
        data = np.empty(size, np.uint8)
        copy_texts(self._starts, self._data, slots, data)
        return offsets, data


class Nested(Column):
    """Values of any other type, in Arrow arrays: each at least twice as long as the next one."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._pieces: list[pa.Array] = []

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(piece.nbytes for piece in self._pieces)

    def append(self, values: pa.Array) -> None:
        """The next slots."""
        self._append(values)
        self.used += len(values)

    def _append(self, values: pa.Array) -> None:
        while self._pieces and len(self._pieces[-1]) < 2 * len(values):
            values = pa.concat_arrays([self._pieces.pop(), values])
        if len(values):
            self._pieces.append(values)

    def _keep(self, slots: Ints) -> None:
        self._pieces = [self.take(slots)] if len(slots) else []

    def take(self, slots: Ints) -> pa.Array:
        """The values of these slots."""
        if not len(slots):
            return pa.array([], self.kind)
        if len(self._pieces) == 1:
            return self._pieces[0].take(pa.array(slots))
        edges = np.cumsum([0, *map(len, self._pieces)])
        piece = np.searchsorted(edges, slots, side="right") - 1
        order = np.argsort(piece, kind="stable")
        bounds = np.searchsorted(piece[order], np.arange(len(self._pieces) + 1))
        parts = [
            values.take(pa.array(slots[order[low:high]] - edge))
            for values, edge, low, high in zip(self._pieces, edges, bounds[:-1], bounds[1:], strict=False)
            if low < high
        ]
        places = np.empty(len(slots), np.int64)
        places[order] = np.arange(len(slots))
        return pa.concat_arrays(parts).take(pa.array(places))


def column(kind: pa.DataType) -> Column:
    """An empty column of this type."""
    types = pa.types
    if types.is_boolean(kind):
        return Truth(kind)
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        return Text(kind)
    if types.is_primitive(kind) or types.is_decimal(kind):
        return Fixed(kind)
    return Nested(kind)


class Columns:
    """All columns of a schema, by slot."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns = [column(field.type) for field in schema]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(column.nbytes for column in self._columns)

    def append(self, batch: pa.RecordBatch) -> None:
        """The next slots."""
        for held, values in zip(self._columns, batch.columns, strict=True):
            held.append(values)

    def take(self, slots: Ints, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """The rows at these slots, one after the other; with `names` only these columns."""
        if names is None:
            return pa.RecordBatch.from_arrays([column.take(slots) for column in self._columns], schema=self.schema)
        places = [self.schema.get_field_index(name) for name in names]
        return pa.RecordBatch.from_arrays([self._columns[place].take(slots) for place in places], names=list(names))

    def keep(self, slots: Ints) -> None:
        """Forget all slots but these; slots[k] becomes k."""
        for held in self._columns:
            held.keep(slots)
