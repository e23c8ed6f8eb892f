"""Values of one column <-> int64 of the same order and equality, as DuckDB orders them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import columns
from windrow.aggregates.extremes import Max, restored
from windrow.kernels.jit import Ints
from windrow.synopses.ranks import TextRanks

SPARED = 1024
"""Strings that left are not looked for among so few."""


class ValueCodes:
    """Numbers, dates and times are their own codes; strings get labels, which change when too many come between."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._ranks = TextRanks(kind) if columns.is_text(kind) else None
        self._live = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return 0 if self._ranks is None else self._ranks.nbytes

    def encode(self, values: pa.Array, translate: Callable[[Ints, Ints], None]) -> Ints:
        """The codes of values without NULLs; `translate(old, new)` must change the stored codes old[i] to new[i]."""
        if self._ranks is not None:
            return self._ranks.encode(values, translate)
        return Max().lift(values).astype(np.int64)

    def decode(self, codes: Ints) -> pa.Array:
        """The values behind codes."""
        if self._ranks is not None:
            return self._ranks.decode(codes)
        return restored(codes, self.kind, None)

    def compact(self, live: Callable[[], Ints]) -> None:
        """Forget the strings that have none of the live codes (ascending), if there are twice as many as last time."""
        if self._ranks is not None and len(self._ranks) > 2 * self._live + SPARED:
            self._ranks.compact(live())
            self._live = len(self._ranks)

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {} if self._ranks is None else {**self._ranks.snapshot(), "live": np.array([self._live])}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        if self._ranks is not None:
            self._ranks = TextRanks(self.kind)
            self._ranks.restore(arrays)
            self._live = int(arrays["live"][0].as_py())
