"""When two definitions of a query write to the same place."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.sinks import output_spec, sink_spec


def test_a_place_has_many_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    absolute, relative, roundabout, other = (
        QueryDefinition("q", "SELECT 1", output_spec(Path(path), "q", "csv"))
        for path in (tmp_path / "out", "out", "./in/../out", "elsewhere")
    )
    assert absolute.writes_like(relative) and relative.writes_like(roundabout)
    assert not relative.writes_like(other)
    monkeypatch.chdir(tmp_path.parent)
    assert not absolute.writes_like(relative)


def test_what_is_no_path_is_compared_as_it_is() -> None:
    one, other = (QueryDefinition("q", "SELECT 1", sink_spec("orc", {"path": path})) for path in ("s3://a", "s3://b"))
    assert one.writes_like(one) and not one.writes_like(other)
    assert QueryDefinition("q", "SELECT 1").writes_like(QueryDefinition("q", "SELECT 2"))
