"""The last tuples of a stream by number: what the end of the input and one-time queries look at.

Panes have their edges at whole slides. The window of the rest that fills no slide begins anywhere, and so does the
window of a question; both are answered from the tuples themselves. Space: the longest ROWS window of the stream, in
the columns that its queries read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

import pyarrow as pa


class RowLog:
    """Tuples `first` … `last`, numbered from 1; older ones are forgotten."""

    def __init__(self, last: int = 0) -> None:
        self._tables: deque[pa.Table] = deque()
        self.last = last

    @property
    def first(self) -> int:
        """The number of the oldest tuple that is kept; last + 1 if there is none."""
        return self.last - len(self) + 1

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    @property
    def nbytes(self) -> int:
        """Bytes of the tuples that are kept."""
        return sum(table.nbytes for table in self._tables)

    def append(self, table: pa.Table) -> None:
        """The next tuples, in ROWS order."""
        self.last += table.num_rows
        if table.num_rows:
            self._tables.append(table)

    def keep(self, count: int) -> None:
        """Forget all but about the last `count` tuples."""
        spare = len(self) - count
        while self._tables and self._tables[0].num_rows <= spare:
            spare -= self._tables.popleft().num_rows
        if self._tables and spare > self._tables[0].num_rows // 2:
            # A slice alone would keep the memory of the whole batch.
            table = self._tables[0]
            self._tables[0] = table.take(pa.array(range(spare, table.num_rows), pa.int64()))

    def knows(self, columns: Collection[str], number: int) -> bool:
        """Whether every tuple from this number on is kept with these columns."""
        if number < self.first:
            return False
        place = self.last + 1
        for table in reversed(self._tables):
            if place <= number:
                break
            if not set(columns) <= set(table.schema.names):
                return False
            place -= table.num_rows
        return True

    def columns(self) -> list[str]:
        """The columns that the newest tuples are kept with."""
        return self._tables[-1].schema.names if self._tables else []

    def rows(self, after: int, upto: int, columns: list[str]) -> pa.Table:
        """The tuples after < number <= upto, in one chunk."""
        parts, number = [], self.first
        for table in self._tables:
            begin, end = max(0, after + 1 - number), min(table.num_rows, upto + 1 - number)
            if begin < end:
                parts.append(table.select(columns).slice(begin, end - begin))
            number += table.num_rows
        if not parts and self._tables:
            parts = [self._tables[-1].select(columns).slice(0, 0)]
        return pa.concat_tables(parts).combine_chunks()

    def tables(self) -> list[pa.Table]:
        """All that is kept, for a snapshot; their columns may differ."""
        return list(self._tables)
