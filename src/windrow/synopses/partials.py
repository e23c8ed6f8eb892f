"""Partials on their way: rows that were pre-aggregated elsewhere, one entry per pane and group, as an Arrow batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.jit import Ints


@dataclass(frozen=True)
class Partials:
    """What a share group elsewhere has in its open panes; no (pane, group) comes twice."""

    edges: Ints
    """The upper edge of the pane."""
    keys: list[pa.Array]
    rows: Ints
    """How many rows are behind it."""
    words: tuple[tuple[Any, ...], ...]
    """The typed words of each component; strings for MIN and MAX of strings."""

    def __len__(self) -> int:
        return len(self.edges)

    def batches(self, most: int) -> Iterator[pa.RecordBatch]:
        """As record batches of at most so many entries; `of` makes partials of each."""
        columns: dict[str, Any] = {"edge": self.edges, "rows": self.rows}
        columns |= {f"key{i}": key for i, key in enumerate(self.keys)}
        columns |= {f"word{i}.{j}": word for i, words in enumerate(self.words) for j, word in enumerate(words)}
        whole = pa.record_batch(
            [array if isinstance(array, pa.Array) else pa.array(array) for array in columns.values()],
            names=list(columns),
        )
        for start in range(0, len(self), most):
            yield whole.slice(start, most)

    @classmethod
    def of(cls, batch: pa.RecordBatch, keys: int, words: Sequence[int]) -> Partials:
        """The inverse of `batches`, for so many keys, and so many words of each component."""

        def read(name: str) -> Any:
            array = batch.column(name)
            return array if array.type in (pa.string(), pa.large_string()) else array.to_numpy()

        return cls(
            np.asarray(read("edge")),
            [batch.column(f"key{i}") for i in range(keys)],
            np.asarray(read("rows")),
            tuple(tuple(read(f"word{i}.{j}") for j in range(count)) for i, count in enumerate(words)),
        )
