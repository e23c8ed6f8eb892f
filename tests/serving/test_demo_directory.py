"""The demo removes only what it made."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow
from windrow.serving.demo import next_steps
from windrow.serving.demo_directory import DemoDirectory


@pytest.fixture
def place(tmp_path: Path) -> DemoDirectory:
    place = DemoDirectory(tmp_path / "demo")
    place.claim()
    return place


def test_a_directory_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(windrow.SetupError, match="not the demo's"):
        DemoDirectory(tmp_path).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(windrow.SetupError, match="is a file"):
        DemoDirectory(tmp_path / "x").claim()


def test_an_unfinished_stream_is_written_anew(place: DemoDirectory) -> None:
    place.packets.mkdir()
    (place.packets / "part-00000.parquet").write_text("half")
    (place.packets / ".part-00001.parquet.tmp").write_text("half")
    assert not place.holds_packets(10, 2)
    place.clear_packets()
    assert list(place.packets.iterdir()) == []
    place.note_packets(10, 2)
    assert place.holds_packets(10, 2) and not place.holds_packets(11, 2)


def test_a_changed_script_is_kept(place: DemoDirectory) -> None:
    assert place.write_script("-- one") is None
    assert place.write_script("-- two") is None
    for number in (1, 2):
        place.script.write_text(f"-- mine {number}")
        saved = place.write_script("-- three")
        assert saved == place.directory / f"demo-changed-{number}.cql"
        assert saved.read_text() == f"-- mine {number}"
    assert place.script.read_text() == "-- three"


def test_only_the_output_of_the_last_run_is_removed(place: DemoDirectory) -> None:
    (place.output / "q").mkdir(parents=True)
    (place.directory / "mine").mkdir()
    place.claim()
    assert not place.fresh_output().exists()
    assert (place.directory / "mine").exists()


def test_next_steps_name_the_files(place: DemoDirectory) -> None:
    text = "\n".join(next_steps(place))
    for part in (f"check {place.script}", "explain", "--checkpoint", "pandas", "duckdb", "spark.read"):
        assert part in text
