"""The experiments run, and the shapes that follow from the policies are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.scheduling import __main__ as scheduling
from benchmarks.scheduling import post, scale
from benchmarks.scheduling.costs import Kept
from benchmarks.scheduling.workload import GROUPS, LOW, Rate, workload


def test_counted_costs(tmp_path: Path) -> None:
    _, held = scheduling.run(quick=True, plots=tmp_path, only=["counted"])
    seen = {name for name, holds in held["counted"].items() if holds}
    assert seen >= {"HS latency", "H-LP throughput", "H-LP best", "AS throughput", "AS falls", "No-S"}
    assert (tmp_path / "scheduling_counted.png").stat().st_size > 1000


def test_dear_post_processing_is_bad_for_aggressive_scheduling() -> None:
    found = post.run(quick=True)
    cheap, dear = min(found), max(found)
    ratio = {read: one["low"]["AS"].latency / one["low"]["H-LP"].latency for read, one in found.items()}
    assert ratio[cheap] < 1 < ratio[dear]


def test_executions_that_are_measured_give_answers() -> None:
    rate = Rate("tiny", 50, {"src": 20})
    kept = Kept(["src"], rate)
    rng = np.random.default_rng(7)
    sums = np.zeros((kept._now + 1, 20), np.int64)
    for tick in range(1, kept._now + 1):
        keys = rng.integers(0, 20, 50)
        np.add.at(sums[tick], keys, rng.integers(40, 1500, 50))
    windows = (30, 100)
    wanted = [np.sort(sums[kept._now + 1 - window :].sum(axis=0)) for window in windows]
    # The ten largest of twenty keys, and the median.
    assert kept.execute([30]) == wanted[0][10:].sum()
    assert kept.execute(windows) == wanted[0][10:].sum() + wanted[1][10]


def test_the_workload() -> None:
    tasks = workload(80, seed=3)
    assert [sum(task.group == name for task in tasks) for name in GROUPS] == [10] * 8
    assert all(20 <= task.window <= 100 and 1 <= task.period <= task.window // 2 for task in tasks)
    assert LOW.values["src"] == 1000


def test_scale(capsys: pytest.CaptureFixture[str]) -> None:
    scale.simulator_speed(200, 500)
    scale.choice_speed((5,))
    assert "200 queries, 500 updates" in capsys.readouterr().out
