"""Distinct rows with a few numbers for each: rows are found by all their columns, in flat arrays.

A row's code is its number in the table. NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, as in DISTINCT and in set
operations. Encoding is O(rows of the batch), `keep` O(table): call it when about half of the table is of no use.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints
from windrow.state.rows import one_batch
from windrow.synopses.groups import Groups

FEWEST = 64
WORD = "__word"


class RowTable:
    """Rows <-> codes 0..len-1, and `words` [codes or more, len(blank)] of int64, which begin as `blank`."""

    def __init__(self, schema: pa.Schema, blank: Sequence[int]) -> None:
        self.schema = schema
        self._blank: Ints = np.array(blank, np.int64)
        self._clear()

    def _clear(self) -> None:
        self._groups = Groups([field.type for field in self.schema])
        self.words: Ints = np.tile(self._blank, (FEWEST, 1))

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._groups.nbytes + int(self.words.nbytes)

    def encode(self, batch: pa.RecordBatch) -> Ints:
        """The code of each row; rows that are not there yet get the next codes."""
        codes = self._groups.encode(batch.columns).astype(np.int64)  # a copy: encode gives memory that is used again
        if len(self) > len(self.words):
            more = np.tile(self._blank, (2 * len(self) - len(self.words), 1))
            self.words = np.concatenate([self.words, more])
        return codes

    def rows(self, codes: Ints) -> pa.RecordBatch:
        """The rows with these codes."""
        return pa.RecordBatch.from_arrays(self._groups.keys(codes), schema=self.schema)

    def keep(self, live: Ints) -> Ints:
        """Forget all rows but these (ascending); gives the new code of each old one, -1 for what is gone."""
        names = np.full(len(self), -1, np.int64)
        names[live] = np.arange(len(live))
        words = np.tile(self._blank, (max(FEWEST, 2 * len(live)), 1))
        words[: len(live)] = self.words[live]
        self._groups.compact(live)
        self.words = words
        return names

    def table(self, live: Ints) -> pa.Table:
        """These rows and their words, for a snapshot."""
        batch = self.rows(live)
        names = [str(i) for i in range(batch.num_columns)]
        words = [pa.array(self.words[live, i]) for i in range(len(self._blank))]
        return pa.Table.from_arrays([*batch.columns, *words], [*names, *(f"{WORD}{i}" for i in range(len(words)))])

    def load(self, table: pa.Table) -> Ints:
        """Have the rows and words of `table` only; gives their codes."""
        self._clear()
        if not table.num_rows:
            return np.empty(0, np.int64)
        batch = one_batch(table.to_batches(), table.schema)
        width = len(self.schema)
        codes = self.encode(pa.RecordBatch.from_arrays(batch.columns[:width], schema=self.schema))
        for i, word in enumerate(batch.columns[width:]):
            self.words[codes, i] = word.to_numpy()
        return codes
