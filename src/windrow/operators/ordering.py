"""ORDER BY and LIMIT inside each window's answer, for all windows at once.

With a LIMIT, most rows are discarded by their first key alone; only the rest is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.kernels.jit import Ints, frozen
from windrow.kernels.top import cut


@dataclass(frozen=True)
class SortKey:
    """One column to sort by."""

    values: pa.Array
    descending: bool = False
    nulls_first: bool = False

    def take(self, rows: Ints) -> SortKey:
        """The key of some rows."""
        return SortKey(self.values.take(pa.array(rows)), self.descending, self.nulls_first)


def choose(
    offsets: Ints, keys: Sequence[SortKey], kept: NDArray[np.bool_] | None, count: int | None, skip: int
) -> Ints:
    """The rows of the answer in their order: by window, then by the keys, left to right.

    Rows offsets[i] … offsets[i+1]-1 belong to window i, as far as they are `kept`; of those, rows skip .. skip+count-1
    are chosen. One look at the first key of every row, and a sort of the rows that it leaves.
    """
    rows = None if kept is None else np.flatnonzero(kept)
    if count is not None:
        rows = _candidates(offsets, keys, rows, skip + count)
    if rows is None:
        windows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    else:
        windows = np.searchsorted(offsets, rows, side="right") - 1
        keys = [key.take(rows) for key in keys]
    ordered = order(windows, keys)
    if count is not None or skip:
        ordered = ordered[limit(windows[ordered], count, skip)]
    return ordered if rows is None else rows[ordered]


def order(windows: NDArray[Any], keys: Sequence[SortKey]) -> Ints:
    """The row order: by window, then by the keys, left to right."""
    columns = [codes_of(key) for key in _without_nulls(keys)]
    result: Ints = np.lexsort([*columns[::-1], windows])
    return result


def limit(windows: NDArray[Any], count: int | None, skip: int) -> NDArray[np.bool_]:
    """True for the rows skip .. skip+count-1 of each window; rows are ordered by window."""
    rows = np.arange(len(windows))
    starts = np.r_[True, windows[1:] != windows[:-1]] if len(windows) else np.zeros(0, bool)
    rank = rows - np.maximum.accumulate(np.where(starts, rows, 0))
    kept: NDArray[np.bool_] = rank >= skip
    if count is not None:
        kept &= rank < skip + count
    return kept


def _candidates(offsets: Ints, keys: Sequence[SortKey], rows: Ints | None, count: int) -> Ints:
    """A superset of each window's first `count` rows, ascending; without `rows` all rows take part.

    Each key is asked only about the rows that all keys before it leave in a tie for a window's last places.
    """
    bounds = offsets.copy() if rows is None else np.searchsorted(rows, offsets)
    wanted = np.minimum(np.diff(bounds), min(count, int(bounds[-1])))
    found: list[Ints] = []
    for key in _without_nulls(keys):
        codes = codes_of(key if rows is None else key.take(rows))
        sure, tied = cut(frozen(codes), bounds, wanted)
        found.append(sure if rows is None else rows[sure])
        rows = tied if rows is None else rows[tied]
        if len(rows) == wanted.sum():
            break
    # Ascending, because rows that are equal in all keys stay in the order in which they came.
    return np.sort(np.concatenate([*found, rows]))


def _without_nulls(keys: Sequence[SortKey]) -> Iterator[SortKey]:
    """A key with NULLs becomes two: where the NULLs go, then the values."""
    for key in keys:
        if key.values.null_count:
            yield SortKey(key.values.is_null(), descending=key.nulls_first)
        yield key


def codes_of(key: SortKey) -> Ints:
    """Numbers in the order of the values, NaN the greatest; all NULLs have the same one."""
    values = key.values
    kind = values.type
    if pa.types.is_floating(kind):
        codes = _total_order(values.fill_null(0.0).cast(pa.float64()).to_numpy(zero_copy_only=False))
    elif pa.types.is_boolean(kind):
        codes = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_integer(kind):
        codes = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_timestamp(kind):
        codes = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        codes = _ranks(values)
    # ~x reverses the order of integers without overflowing at the least one.
    return ~codes if key.descending else codes


def _total_order(numbers: NDArray[np.float64]) -> Ints:
    numbers = numbers + 0.0  # -0.0 is 0.0; also a copy that may be written to
    numbers[np.isnan(numbers)] = np.nan  # one NaN, with the sign cleared: above infinity
    bits = numbers.view(np.int64)
    # Negative numbers have their bits in reverse order.
    result: Ints = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return result


def _ranks(values: pa.Array) -> Ints:
    if pa.types.is_list(values.type):
        values = _spelt(values)
    encoded = pc.dictionary_encode(values)
    ranks = np.zeros(len(encoded.dictionary) + 1, np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    result: Ints = ranks[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()]
    return result


def _spelt(lists: pa.Array) -> pa.Array:
    """Lists as bytes of the same order: the first different element decides, then the shorter list comes first.

    An element is spelt by its rank, in as many bytes for every element; structs are compared field by field.
    """
    elements = lists.flatten()
    fields = elements.flatten() if pa.types.is_struct(elements.type) else [elements]
    columns = [codes_of(SortKey(field)) for field in fields]
    order = np.lexsort(columns[::-1])
    fresh = np.zeros(len(order), np.int64)
    for codes in columns:
        fresh[1:] |= np.diff(codes[order]) != 0
    ranks = np.empty(len(order), ">u4")
    ranks[order] = np.cumsum(fresh)
    lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    offsets = np.concatenate([[0], 4 * np.cumsum(lengths)])
    spelt = pa.Array.from_buffers(
        pa.large_binary(), len(lists), [None, pa.py_buffer(offsets), pa.py_buffer(ranks.tobytes())]
    )
    return pc.if_else(lists.is_valid(), spelt, pa.scalar(None, spelt.type))
