"""A run whose workers slice for derived queries too is recovered from its journal, whatever would be cheapest then."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.test_host import Folder, opened, packed
from tests.random_queries import tables
from tests.sharing.overlapping import overlapping
from windrow.pipeline.host import Host
from windrow.testing import cut


def run(root: Path, texts: list[str], batches: list[pa.Table], stops: set[int]) -> dict[str, list[str]]:
    """Everything that can be derived is; after some batches the host is closed and recovered."""

    def started() -> tuple[Host, Folder]:
        host, folder, _ = opened(root, texts)  # replays with the default: by cost, and these batches are too small
        host.engine.deriving = "always"
        return host, folder

    host, folder = started()
    for number, batch in enumerate(batches):
        host.take("s", number, packed(host, cut(batch, number, 2)), flush=number % 2 == 0)
        if number in stops:
            host.close()
            host, folder = started()
    host.finish(["s"])
    host.close()
    return {name: sorted(lines) for name, lines in folder.contents().items()}


@given(tables(), overlapping(most=5), st.integers(0, 2**32), st.data())
def test_recovered_after_any_batch(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, texts: list[str], seed: int, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("derived")
    batches = cut(table, seed, 4)
    stops = data.draw(st.sets(st.integers(0, len(batches) - 1), min_size=1))
    assert run(root / "cut", texts, batches, stops) == run(root / "whole", texts, batches, set())
