"""Partials: rows pre-aggregated elsewhere and absorbed give the answers of rows inserted here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_queries import TICKS, tables
from windrow.aggregates import aggregate
from windrow.synopses.partials import Partials
from windrow.synopses.share_group import ComponentSpec, ShareGroup
from windrow.testing import cut
from windrow.windows.grid import Grid

GRID = Grid.of([(5, 0)])
CALLS = [("COUNT", None), ("COUNT", "x"), ("SUM", "a"), ("SUM", "b"), ("AVG", "x"), ("MIN", "s"), ("MAX", "s")]
CALLS += [("MIN", "x"), ("MAX", "d"), ("VAR_POP", "a")]
COLUMNS = ["a", "b", "x", "s", "d"]


def group(keys: list[str], layout: str | None = None) -> ShareGroup:
    specs = []
    for name, column in CALLS:
        kind = None if column is None else TICKS.field(column).type
        place = None if column is None else COLUMNS.index(column)
        specs += [ComponentSpec(component, place) for component in aggregate(name, kind).components]
    return ShareGroup([TICKS.field(key).type for key in keys], list(dict.fromkeys(specs)), GRID, layout)


def insert(into: ShareGroup, table: pa.Table, keys: list[str]) -> None:
    batch = table.combine_chunks()
    columns = {name: batch.column(name).combine_chunks() for name in batch.schema.names}
    into.insert(columns["t"].to_numpy(), [columns[key] for key in keys], [columns[name] for name in COLUMNS])


def answers(one: ShareGroup) -> list[tuple[object, ...]]:
    one.close(10**9)
    ends = np.arange(-50, 1_000_100, 5)[:: 1 if one.panes else 10_000]
    ends = ends[(ends < 120) | (ends > 999_990)]
    found = one.lookup(ends - 15, ends, range(len(one.specs)))
    keys = [array.to_pylist() for array in one.dictionary.keys(found.group)] if one.dictionary.key_types else []
    words = [
        word.tolist() if isinstance(word, np.ndarray) else word.to_pylist() for part in found.words for word in part
    ]
    rows = zip(ends[found.window].tolist(), *keys, *words, strict=True)
    return sorted(rows, key=repr)


@pytest.mark.parametrize("layout", [None, "sparse"])
@pytest.mark.parametrize("keys", [[], ["s"], ["a", "f"]])
@given(table=tables(), seed=st.integers(0, 1000))
def test_absorbed_partials_equal_inserted_rows(keys: list[str], layout: str | None, table: pa.Table, seed: int) -> None:
    if layout == "sparse" and not keys:
        return
    table = table.set_column(
        3, "x", pa.array([1.0 if v is None else 0.5 for v in table["a"].to_pylist()], pa.float64())
    )
    whole, merged = group(keys, layout), group(keys, layout)
    insert(whole, table, keys)
    for piece in cut(table, seed, 4):
        shard = group(keys)
        insert(shard, piece, keys)
        for batch in shard.partials().batches(7):
            merged.absorb(Partials.of(batch), range(len(merged.specs)))
    assert np.allclose(*([[value if isinstance(value, (int, float)) else 0 for value in row] for row in side] or [[0]]
                         for side in (answers(merged), answers(whole))), rtol=1e-12, atol=1e-9)  # fmt: skip
    assert [row[: 1 + len(keys)] for row in answers(merged)] == [row[: 1 + len(keys)] for row in answers(whole)]
