"""Partials on their way: rows that were pre-aggregated elsewhere, one entry per pane and group, as an Arrow batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
        for i, words in enumerate(self.words):
            if words[0] is not self.rows:  # a count that is the row count so far need not travel twice
                columns |= {f"word{i}.{j}": word for j, word in enumerate(words)}
        whole = pa.record_batch(
            [array if isinstance(array, pa.Array) else pa.array(array) for array in columns.values()],
            names=list(columns),
        ).replace_schema_metadata({_COMPONENTS: str(len(self.words)).encode()})
        for start in range(0, len(self), most):
            yield whole.slice(start, most)

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Partials:
        """The inverse of `batches`."""
        names, rows = batch.schema.names, batch.column("rows").to_numpy()
        found: dict[str, list[Any]] = {}
        for name in names:
            if name.startswith("word"):
                found.setdefault(name.partition(".")[0], []).append(_word(batch.column(name)))
        count = int(batch.schema.metadata[_COMPONENTS])
        return cls(
            batch.column("edge").to_numpy(),
            [batch.column(name) for name in names if name.startswith("key")],
            rows,
            tuple(tuple(found.get(f"word{i}", (rows,))) for i in range(count)),
        )


_COMPONENTS = b"components"


def _word(array: pa.Array) -> Any:
    """Numbers for the layout; what is for strings and collections stays in Arrow."""
    return array.to_numpy() if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) else array
