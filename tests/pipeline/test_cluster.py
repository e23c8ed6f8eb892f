"""The command line on a real cluster: the answers are those of a local run, also when an executor dies on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.cluster import Cluster, standalone_cluster
from tests.pipeline.crash_run import (
    QUICK_START,
    RUN_SECONDS,
    contents,
    run,
    said,
    start,
    wait_for,
    write_readings,
    write_script,
)

FILES = 24
SMALL = (*QUICK_START, "spark.executor.memory=500m")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    write_readings(directory, FILES)
    return directory


@pytest.fixture(scope="module")
def local(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """What local[2] answers, by scan."""
    found = {}
    for scan in ("arrow", "rows"):
        home = tmp_path_factory.mktemp("local") / scan
        write_script(home, data, scan)
        assert run(home, "--quiet", "--master", "local[2]") == 0, said(home)
        found[scan] = contents(home)
    assert all(found["arrow"].values())
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with standalone_cluster() as running:
        yield running


def imported_from(cluster: Cluster) -> list[Path]:
    """Byte code that executors have written beside the package which they were sent: they import that one."""
    return list(cluster.directory.glob("w*/app-*/*/windrow/__pycache__/slicer.*.pyc"))


@pytest.mark.parametrize("scan", ["arrow", pytest.param("rows", marks=pytest.mark.slow)])
def test_a_cluster_answers_as_a_local_run_does(
    cluster: Cluster, data: Path, local: dict[str, dict[str, list[str]]], tmp_path: Path, scan: str
) -> None:
    before = set(imported_from(cluster))
    write_script(tmp_path, data, scan)
    assert run(tmp_path, "--quiet", "--master", cluster.url, settings=SMALL) == 0, said(tmp_path)
    assert contents(tmp_path) == local[scan]
    assert said(tmp_path) == ""
    assert set(imported_from(cluster)) - before


def test_a_lost_executor_changes_nothing(
    cluster: Cluster, data: Path, local: dict[str, dict[str, list[str]]], tmp_path: Path
) -> None:
    write_script(tmp_path, data)
    with start(tmp_path, "--quiet", "--master", cluster.url, settings=SMALL) as process:
        journal = tmp_path / "ckpt/journal"
        assert wait_for(lambda: len(list(journal.glob("*.arrow"))) >= 3 or process.poll() is not None, RUN_SECONDS)
        executors = cluster.executors()
        assert len(executors) == 2, said(tmp_path)
        os.kill(executors[0], signal.SIGKILL)
        steps = len(list(journal.glob("*.arrow")))
        assert process.wait(RUN_SECONDS) == 0, said(tmp_path)
    assert steps < FILES // 2, "the executor was killed too late to be missed"
    assert contents(tmp_path) == local["arrow"]
