"""ORDER BY and LIMIT inside each window's answer, for all windows at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True)
class SortKey:
    """One column to sort by."""

    values: pa.Array
    descending: bool = False
    nulls_first: bool = False


def order(windows: NDArray[Any], keys: Sequence[SortKey]) -> NDArray[np.int64]:
    """The row order: by window, then by the keys, left to right."""
    columns: list[NDArray[Any]] = []
    for key in keys:
        columns += _codes(key)
    return np.lexsort([*columns[::-1], windows])


def limit(windows: NDArray[Any], count: int | None, skip: int) -> NDArray[np.bool_]:
    """True for the rows skip .. skip+count-1 of each window; rows are ordered by window."""
    rows = np.arange(len(windows))
    starts = np.r_[True, windows[1:] != windows[:-1]] if len(windows) else np.zeros(0, bool)
    rank = rows - np.maximum.accumulate(np.where(starts, rows, 0))
    kept = rank >= skip
    return kept if count is None else kept & (rank < skip + count)


def _codes(key: SortKey) -> list[NDArray[Any]]:
    """Sortable numbers: first where the NULLs go, then the values; NaN is the greatest number."""
    values = key.values
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = np.array(values.fill_null(0.0).cast(pa.float64()).to_numpy(zero_copy_only=False))
        codes = _total_order(numbers)
    elif pa.types.is_boolean(kind):
        codes = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_integer(kind):
        codes = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_timestamp(kind):
        codes = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        codes = _ranks(values)
    # ~x reverses the order of integers without overflowing at the least one.
    codes = np.where(nulls, 0, ~codes if key.descending else codes)
    return [np.where(nulls, not key.nulls_first, key.nulls_first).astype(np.int8), codes]


def _total_order(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    numbers[np.isnan(numbers)] = np.nan  # one NaN, with the sign cleared: above infinity
    bits = (numbers + 0.0).view(np.int64)
    # Negative numbers have their bits in reverse order.
    result: NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return result


def _ranks(values: pa.Array) -> NDArray[np.int64]:
    encoded = pc.dictionary_encode(values)
    ranks = np.empty(len(encoded.dictionary) + 1, np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    result: NDArray[np.int64] = ranks[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()]
    return result
