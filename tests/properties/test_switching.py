"""Invariant 2: answers do not change when every synopsis is exchanged for another one at every close."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.test_cut_independence import run
from tests.random_queries import queries, tables
from windrow.synopses import dense
from windrow.synopses.chooser import COMBINING
from windrow.testing import assert_same, cut


@given(tables(), st.lists(queries(), min_size=1, max_size=3), st.integers(0, 2**32))
def test_switching_at_every_close(table: pa.Table, texts: list[str], seed: int) -> None:
    batches = cut(table, seed, 6)
    chosen = run(texts, batches)
    names = cycle(COMBINING)
    made: list[str] = []

    def next_one(*_: Any) -> str:
        made.append(next(names))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "better", next_one)
        switched = run(texts, batches)
    for ours, theirs in zip(switched, chosen, strict=True):
        assert_same(ours, theirs, absolute=1e-9)
