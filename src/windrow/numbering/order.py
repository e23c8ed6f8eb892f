"""ROWS order: by ts, ties by the stream's SEQUENCE column, then by the row's values, NULLs last, NaN the greatest.

It is total up to rows that are alike, so that numbers never depend on how the input was cut or arrived.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.kernels.jit import Ints
from windrow.kernels.ties import sort_runs
from windrow.operators.ordering import SortKey, codes_of


def rows_order(sequence: str | None, table: pa.Table | pa.RecordBatch, ts: Ints) -> Ints:
    """The places of the rows in ROWS order: O(n log n), and a column is compared only where all before it tie."""
    placed: Ints = np.argsort(ts, kind="stable")
    names = [*([sequence] if sequence is not None else []), *table.schema.names]
    # The rows that are not in order yet: where they stand, and in which run of ties.
    where: Ints = np.arange(len(ts))
    run: Ints = ts[placed]
    for name in dict.fromkeys(names):
        for nulls in (True, False):
            tied = _tied(run)
            where, run = where[tied], run[tied]
            if not len(where):
                return placed
            rows = placed[where]
            codes = _codes(table.column(name), rows, nulls=nulls)
            if codes is not None:
                sort_runs(run, codes, rows)
                placed[where] = rows
                # Rows of one run with different codes are in different runs from now on.
                run = np.cumsum(np.append(True, (run[1:] != run[:-1]) | (codes[1:] != codes[:-1])))
    return placed


def _tied(run: Ints) -> NDArray[np.bool_]:
    """Which rows have a neighbour in the same run."""
    same = run[1:] == run[:-1]
    result: NDArray[np.bool_] = np.append(False, same) | np.append(same, False)
    return result[: len(run)]


def _codes(column: pa.ChunkedArray | pa.Array, rows: Ints, *, nulls: bool) -> Ints | None:
    """Numbers in the order of the values of these rows; or where their NULLs go, None if there are none."""
    if nulls and not column.null_count:
        return None
    values = column.take(pa.array(rows))
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    return np.array(codes_of(SortKey(values.is_null() if nulls else values)))
