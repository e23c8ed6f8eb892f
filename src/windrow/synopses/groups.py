"""The dictionary of groups: key columns to dense int32 group numbers and back; NULL is a key like any other.

One column: a code per value is the group number. Several: codes are paired left to right through hash tables of
int64. Encoding is O(rows), no Python loop per row or group; `compact` forgets dead groups in every table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import columns
from windrow.kernels.jit import Codes
from windrow.synopses.codes import Encoder, IntCodes, IntEncoder, ValueEncoder
from windrow.synopses.fixed_codes import FixedEncoder, is_fixed
from windrow.synopses.snapshot import prefixed, within
from windrow.synopses.text_codes import TextEncoder


class Groups:
    """Key columns <-> group numbers 0..len-1 (`gids`); without key columns there is exactly group 0."""

    def __init__(self, key_types: Sequence[pa.DataType]) -> None:
        self.key_types = tuple(key_types)
        self._columns: list[Encoder] = [encoder(kind) for kind in self.key_types]
        # The pair table i codes (group number over columns 0..i, code of column i+1).
        self._pairs = [IntCodes(direct=False) for _ in self.key_types[1:]]

    def __len__(self) -> int:
        if not self._columns:
            return 1
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(table.nbytes for table in self._tables())

    def _tables(self) -> list[Encoder | IntCodes]:
        return [*self._columns, *self._pairs]

    def encode(self, columns: Sequence[pa.Array]) -> Codes:
        """The group number of each row; new groups get the next numbers."""
        gids = self._columns[0].encode(columns[0])
        for column, pairs, values in zip(self._columns[1:], self._pairs, columns[1:], strict=True):
            both = np.empty(len(gids), np.int64)
            # Each encode may use the same scratch memory: the left codes go into place before the right ones come.
            np.left_shift(gids, 32, out=both, dtype=np.int64)
            np.bitwise_or(both, column.encode(values), out=both)
            gids = pairs.encode_ints(both, "pairs")
        return gids

    def keys(self, gids: Any) -> list[pa.Array]:
        """The key columns of these groups, in the declared types."""
        if len(gids) > 2 * len(self):
            # Many windows: decode each group once, and let Arrow copy the values (its allocator re-uses memory).
            chosen = pa.array(gids)
            return [column.take(chosen) for column in self._decode(np.arange(len(self)))]
        return self._decode(gids)

    def _decode(self, gids: Any) -> list[pa.Array]:
        found: list[pa.Array] = []
        for column, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            both = pairs.values(gids)
            found.append(column.decode(both & 0xFFFFFFFF))
            gids = both >> 32
        found += [column.decode(gids) for column in self._columns[:1]]
        return found[::-1]

    def compact(self, live: Any) -> None:
        """Keep these groups only; group live[k] becomes k. `live` is ascending."""
        for column, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            both = pairs.values(live)
            left, first_codes = np.unique(both >> 32, return_inverse=True)
            right, second_codes = np.unique(both & 0xFFFFFFFF, return_inverse=True)
            column.compact(right)
            pairs.replace((first_codes.astype(np.int64) << 32) | second_codes)
            live = left
        for column in self._columns[:1]:
            column.compact(live)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays for `snapshot.pack`."""
        arrays: dict[str, Any] = {}
        for i, table in enumerate(self._tables()):
            arrays |= prefixed(str(i), table.snapshot())
        return arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        for i, table in enumerate(self._tables()):
            table.restore(within(str(i), arrays))


def encoder(kind: pa.DataType) -> Encoder:
    """The encoder of a key column of this type."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if columns.is_int_like(kind) or pa.types.is_floating(kind):
        return IntEncoder(kind)
    if columns.is_text(plain) or columns.is_binary(plain):
        return TextEncoder(kind)
    return FixedEncoder(kind) if is_fixed(plain) else ValueEncoder(kind)
