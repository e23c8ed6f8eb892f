"""A key column of numbers, dates and times: values to dense int32 codes and back, across batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.aggregates import columns
from windrow.aggregates.extremes import ordered, unordered
from windrow.kernels import hashing
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.language.types import numpy_dtype
from windrow.synopses.scratch import scratch

DIRECT = 1 << 17
"""Ranges up to this size use a direct lookup table (512 KiB of int32: it stays in the L2 cache)."""


class Encoder(ABC):
    """Values <-> codes; a new value gets the next code."""

    @abstractmethod
    def encode(self, values: pa.Array) -> Codes:
        """The code of each value, NULL included."""

    @abstractmethod
    def decode(self, codes: Any) -> pa.Array:
        """The values of codes, in the declared type."""

    @abstractmethod
    def compact(self, live: Any) -> None:
        """Keep these codes only; live[k] becomes k."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""

    @abstractmethod
    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""


class IntCodes:
    """int64 values to codes: a direct table while the range is small, else an open-addressing hash table."""

    def __init__(self, *, direct: bool = True) -> None:
        self._direct = direct
        self._base = 0
        self._table: Codes = np.full(0 if direct else 16, -1, np.int32)
        self._uniques: Ints = np.empty(8, np.int64)
        self._count = 0
        self.null = -1

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._table.nbytes + self._uniques.nbytes)

    def encode_ints(self, values: NDArray[Any], name: str = "codes") -> Codes:
        """The code of each value; int32 and int64 are taken as they are. Valid until the next call for `name`."""
        values = frozen(values)
        codes = scratch(name, len(values))
        done = 0
        while True:
            if self._direct:
                done, self._count = hashing.encode_direct(
                    values, done, self._base, self._table, self._uniques, self._count, codes
                )
            else:
                done, self._count = hashing.encode_hashed(
                    values, done, self._table, self._shift, self._uniques, self._count, codes
                )
            if done == len(values):
                return codes
            self._make_room(values[done:])

    def null_code(self) -> int:
        """The code of NULL."""
        if self.null < 0:
            if self._count == len(self._uniques):
                self._grow_uniques()
            self.null = self._count
            self._uniques[self._count] = 0
            self._count += 1
        return self.null

    def values(self, codes: Any) -> Ints:
        """The value of each code."""
        return np.asarray(self._uniques[codes])

    @property
    def uniques(self) -> Ints:
        """All values, by code."""
        return self._uniques[: self._count]

    def replace(self, values: Ints, null: int = -1) -> None:
        """Forget everything; value k gets code k."""
        self._count = len(values)
        self._uniques = np.empty(max(8, self._count + self._count // 2), np.int64)
        self._uniques[: self._count] = values
        self.null = null
        self._index()

    @property
    def _shift(self) -> int:
        return 64 - (len(self._table).bit_length() - 1)

    def _make_room(self, rest: NDArray[Any]) -> None:
        """A value does not fit: enlarge the uniques, the direct table, or go over to hashing."""
        if self._count == len(self._uniques):
            self._grow_uniques()
            return
        low, high = int(rest.min()), int(rest.max())
        known = self._known()
        if len(known):
            low, high = min(low, int(known.min())), max(high, int(known.max()))
            # Values may go on growing, or falling: half as much again on both sides makes the next time come later.
            spare = min(high - low + 1, DIRECT - (high - low + 1)) // 2
            if spare > 0:
                low, high = max(low - spare, -(1 << 63)), min(high + spare, (1 << 63) - 1)
        self._index(low, high)

    def _grow_uniques(self) -> None:
        uniques = np.empty(2 * len(self._uniques), np.int64)
        uniques[: self._count] = self.uniques
        self._uniques = uniques
        if not self._direct:
            self._index()

    def _known(self) -> Ints:
        return self.uniques if self.null < 0 else np.delete(self.uniques, self.null)

    def _index(self, low: int | None = None, high: int | None = None) -> None:
        """Rebuild the table for the values known, and those between low and high."""
        known = self._known()
        if self._direct:
            if low is None or high is None:
                low, high = (int(known.min()), int(known.max())) if len(known) else (0, -1)
            self._direct = high - low < DIRECT
        if self._direct:
            assert low is not None and high is not None
            self._base = low
            self._table = np.full(high - low + 1, -1, np.int32)
            codes = np.arange(self._count, dtype=np.int32)
            self._table[known - low] = codes if self.null < 0 else np.delete(codes, self.null)
        else:
            # At most half full: the uniques have room for half as many values as the table.
            size = 1 << (2 * len(self._uniques) - 1).bit_length()
            self._table = np.full(size, -1, np.int32)
            hashing.index_uniques(self._uniques, self._count, self.null, self._table, self._shift)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"uniques": self.uniques, "null": np.array([self.null, self._direct], np.int64)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        null, direct = (int(word) for word in np.asarray(arrays["null"]))
        self._direct = bool(direct)
        self.replace(np.array(arrays["uniques"]), null)


class IntEncoder(Encoder):
    """Ints, bools, dates and times by their value; floats by their bits, NaNs equal and -0.0 as 0.0."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._floating = pa.types.is_floating(kind)
        self._codes = IntCodes(direct=not self._floating)
        self._word = np.dtype(f"i{kind.bit_width // 8}") if _is_word(kind) else None
        """What Arrow stores, if kernels take it as it is."""

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._codes.nbytes

    def encode(self, values: pa.Array) -> Codes:
        """By value; NULLs apart, only when there are any."""
        if self._word is not None and not values.null_count and values.type == self._kind:
            return self._codes.encode_ints(columns.primitive(values, self._word))
        data = ordered(columns.floats(values)) if self._floating else columns.ints(values)
        valid = columns.validity(values)
        if valid is None:
            return self._codes.encode_ints(data)
        codes = np.empty(len(data), np.int32)
        codes[valid] = self._codes.encode_ints(data[valid])
        codes[~valid] = self._codes.null_code()
        return codes

    def decode(self, codes: Any) -> pa.Array:
        """Take from the values known."""
        values = self._codes.values(codes)
        if self._word is not None and self._codes.null < 0:
            return columns.from_words(values.astype(self._word, copy=False), self._kind)
        null = codes == self._codes.null if self._codes.null >= 0 else None
        if self._floating:
            return pa.array(unordered(values).astype(numpy_dtype(self._kind), copy=False), mask=null)
        return columns.from_ints(values, self._kind, null)

    def compact(self, live: Any) -> None:
        """Rebuild from what lives; a range that became small is direct again."""
        null = np.flatnonzero(live == self._codes.null)
        self._codes._direct = not self._floating
        self._codes.replace(self._codes.values(live), int(null[0]) if len(null) else -1)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return self._codes.snapshot()

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._codes.restore(arrays)


def _is_word(kind: pa.DataType) -> bool:
    signed = columns.is_int_like(kind) and not pa.types.is_unsigned_integer(kind)
    return signed and kind.bit_width in (32, 64)


class ValueEncoder(Encoder):
    """Types that no others take: Arrow's dictionary of each batch, matched with the one kept, O(known) per batch."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._values = pa.array([], self._plain)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self._values.nbytes)

    def encode(self, values: pa.Array) -> Codes:
        """Dictionary-encode the batch, then its distinct values against those known."""
        if values.type != self._plain:
            values = values.cast(self._plain)
        batch = values.dictionary_encode(null_encoding="encode")
        known = pc.index_in(batch.dictionary, value_set=self._values)
        if known.null_count:
            fresh = batch.dictionary.filter(known.is_null())
            self._values = pa.concat_arrays([self._values, fresh])
            known = pc.index_in(batch.dictionary, value_set=self._values)
        found: Codes = columns.primitive(known, np.int32)[columns.primitive(batch.indices, np.int32)]
        return found

    def decode(self, codes: Any) -> pa.Array:
        """Take from the values known."""
        found = self._values.take(pa.array(codes))
        return found if found.type == self._kind else found.cast(self._kind)

    def compact(self, live: Any) -> None:
        """Keep what lives."""
        self._values = self._values.take(pa.array(live))

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"values": self._values}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        self._values = arrays["values"].cast(self._plain)
