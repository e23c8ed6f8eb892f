"""The last rows of each key: the contents of `[PARTITION BY keys ROWS n OFFSET m SLIDE k]` windows.

Every row points at the one before it of the same key, and every key at its newest row; all of it in flat arrays, next
to one table of the rows. Taking in a row is O(1). The contents of a window are found in O(keys + rows in it). Space: at
most about twice the rows that windows can still hold, n + m of each key that ever came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.chains import NONE, last_rows, link_rows, mark_rows
from windrow.kernels.jit import Codes, Ints
from windrow.synopses.groups import Groups
from windrow.synopses.snapshot import numpy_of, prefixed, within

ROWS_AT_ONCE = 1 << 20
"""Rows of windows that are found, and answered, together."""
FEWEST_SPARE = 4096
"""So many rows that no window holds any more are always left where they are."""
MANY_CHUNKS = 64


@dataclass(frozen=True)
class Contents:
    """The rows of windows first … first+count-1 of those asked for; `windows` says which one each row is in."""

    first: int
    count: int
    windows: Ints
    rows: pa.Table


class LastRows:
    """The newest `reach` rows of each key, where `reach` is that of the longest window."""

    def __init__(self, key_types: Sequence[pa.DataType], begin: int = 0) -> None:
        self.begin = begin
        """Rows up to this number are not here."""
        self._groups = Groups(key_types)
        self._tables: list[pa.Table] = []
        self._held = 0
        self._heads: Ints = np.empty(0, np.int64)
        self._previous: Ints = np.empty(0, np.int64)
        self._numbers: Ints = np.empty(0, np.int64)
        self._old_heads: Ints = self._heads
        self._new_keys: Codes = np.empty(0, np.int32)
        self._live = 0
        self.columns: frozenset[str] = frozenset()
        """Those that all rows are kept with."""
        self.forgot = False
        """Whether some rows are gone, so that a longer window would miss them."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self._heads, self._previous, self._numbers)
        rows = sum(int(one.nbytes) for one in self._tables)
        return sum(one.nbytes for one in arrays) + rows + self._groups.nbytes

    def __len__(self) -> int:
        return self._held

    def append(self, table: pa.Table, keys: Sequence[str], numbers: Ints) -> None:
        """The next rows, in ROWS order; `contents` is then about windows that end among them."""
        codes = np.array(self._groups.encode([table.column(name).combine_chunks() for name in keys]))
        more = len(self._groups) - len(self._heads)
        self._heads = np.concatenate([self._heads, np.full(more, NONE, np.int64)])
        self._old_heads, self._new_keys = self._heads.copy(), codes
        names = frozenset(table.schema.names)
        self.columns = names & self.columns if self._held else names
        base, self._held = self._held, self._held + len(codes)
        if self._held > len(self._previous):
            self._previous = _enlarged(self._previous, base, 2 * self._held)
            self._numbers = _enlarged(self._numbers, base, 2 * self._held)
        self._numbers[base : self._held] = numbers
        link_rows(codes, base, self._heads, self._previous)
        self._tables.append(table)

    def contents(self, upto: Ints, *, origin: int, skip: int, count: int) -> Iterator[Contents]:
        """What windows hold that end with the tuples of these numbers: of each key, after the newest `skip` rows.

        The numbers ascend, and are those of new rows or the one before them. Rows up to `origin` are in no window.
        """
        base = self._held - len(self._new_keys)
        stops = np.searchsorted(self._numbers[base : self._held], upto, side="right")
        heads = self._old_heads.copy()
        room = max(ROWS_AT_ONCE, self._held)
        rows, windows = np.empty(room, np.int64), np.empty(room, np.int64)
        window = done = 0
        while window < len(stops):
            first = window
            window, done, given = last_rows(
                self._new_keys, base, stops, window, done, heads, self._previous, self._numbers, origin, skip, count,
                rows, windows,
            )  # fmt: skip
            taken = self._table().take(pa.array(rows[:given]))
            yield Contents(first, window - first, windows[:given] - first, taken)

    def settle(self, reach: int) -> None:
        """All windows that end among the new rows are answered: forget, now and then, what no window can hold."""
        self._new_keys, self._old_heads = np.empty(0, np.int32), self._heads
        if self._held <= 2 * self._live + FEWEST_SPARE:
            return
        marked = np.zeros(self._held, np.bool_)
        mark_rows(self._heads, self._previous, reach, marked)
        kept = np.flatnonzero(marked)
        self.forgot = self.forgot or len(kept) < self._held
        place = np.full(self._held + 1, NONE, np.int64)  # the last one is where NONE points
        place[kept] = np.arange(len(kept))
        self._tables = [self._table().take(pa.array(kept))]
        self._previous, self._numbers = place[self._previous[kept]], self._numbers[kept]
        self._heads = self._old_heads = place[self._heads]
        self._held = self._live = len(kept)

    def _table(self) -> pa.Table:
        """All rows; a column that came with a later query is NULL in rows that this query does not see."""
        table = pa.concat_tables(self._tables, promote_options="default")
        if len(self._tables) > MANY_CHUNKS:
            table = table.combine_chunks()
            self._tables = [table]
        return table

    # -- snapshots ------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any], pa.Table | None]:
        """What is JSON-able, named arrays for `snapshot.pack`, and the rows."""
        arrays = {
            "heads": self._heads,
            "previous": self._previous[: self._held],
            "numbers": self._numbers[: self._held],
        } | prefixed("keys", self._groups.snapshot())
        meta = {"live": self._live, "forgot": self.forgot, "begin": self.begin, "columns": sorted(self.columns)}
        return meta, arrays, self._table() if self._tables else None

    def restore(self, meta: dict[str, Any], arrays: dict[str, Any], rows: pa.Table | None) -> None:
        """Become what `snapshot` gave."""
        self._live, self.forgot, self.begin = meta["live"], meta["forgot"], meta["begin"]
        self.columns = frozenset(meta["columns"])
        self._heads = self._old_heads = numpy_of(arrays["heads"])
        self._previous, self._numbers = numpy_of(arrays["previous"]), numpy_of(arrays["numbers"])
        self._groups.restore(within("keys", arrays))
        self._tables = [] if rows is None else [rows]
        self._held = len(self._numbers)
        if self._held != (0 if rows is None else rows.num_rows) or len(self._heads) != len(self._groups):
            raise ValueError(f"{self._held} numbers and {len(self._heads)} newest rows do not fit the rows and keys")


def _enlarged(array: Ints, used: int, size: int) -> Ints:
    larger = np.empty(size, np.int64)
    larger[:used] = array[:used]
    return larger
