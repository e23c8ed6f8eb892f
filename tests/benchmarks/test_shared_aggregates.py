"""The experiments run, their ways agree (each asserts that), and the shapes that no neighbour can disturb are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.shared_aggregates import (
    figure6_3,
    figure9,
    figure12,
    figures10_11,
    many_windows,
    psoup,
    substream_scale,
)
from benchmarks.shared_aggregates.psoup import LEFT, ORDER, RED, RIGHT, ROOT, TOTAL, VALUE


def test_figure_9(tmp_path: Path) -> None:
    held = figure9.shape(figure9.run(quick=True, plots=tmp_path))
    assert held["all"] and held["none"] and held["passes"]
    assert (tmp_path / "shared_figure9.png").stat().st_size > 1000


def test_figures_10_and_11(capsys: pytest.CaptureFixture[str]) -> None:
    rates = figures10_11.run(quick=True, plots=None)
    assert "Figure 11" in capsys.readouterr().out
    for name in ("R-INT/SUM", "B-INT/MAX", "L-INT/MAX"):
        if name in rates["lookups"]:
            # No lookup looks at every tuple of its window.
            assert rates["lookups"][name][-1] > 1e6


def test_figure_12() -> None:
    rates = figure12.run(quick=True, plots=None)
    assert max(rate for name, rate in rates.items() if name.startswith("p =")) > 5 * rates["naive"]


def test_the_filter_wins_with_many_groups() -> None:
    found = substream_scale.run(quick=True, plots=None)
    scan, filtered, _ = found[max(found)]
    assert filtered < scan


def test_figure_6_3() -> None:
    held = figure6_3.shape(figure6_3.run(quick=True, plots=None))
    assert held["threshold"] and held["above"] and held["space"]


@pytest.mark.slow
def test_many_windows() -> None:
    for found in many_windows.run(quick=True, plots=None).values():
        counts = list(found)
        assert found[counts[-1]][0] < 5 * found[counts[0]][0]
        assert found[counts[-1]][1] < counts[-1] * found[counts[0]][1]


def test_the_tree_of_psoup_is_a_red_black_tree() -> None:
    rng = np.random.default_rng(0)
    tree = psoup.empty(300)
    free, count, oldest = list(range(1, 301)), 0, 0
    values: list[int] = []
    for step in range(2000):
        if len(values) - oldest < 300 and (step < 50 or len(values) == oldest or rng.random() < 0.55):
            value = int(rng.integers(1, 100))
            psoup.append(tree, free.pop(), count, value)
            values.append(value)
            count += 1
        else:
            free.append(psoup.remove_oldest(tree))
            oldest += 1
        if step % 10 == 0:
            _check(tree, int(tree[ROOT, VALUE]))
            since = int(rng.integers(oldest, count + 1))
            assert psoup.sum_since(tree, since) == sum(values[since:])


def _check(tree: np.ndarray, node: int) -> tuple[int, int]:
    """Black height and sum of a subtree, whose invariants hold."""
    if not node:
        return 1, 0
    left, right = int(tree[node, LEFT]), int(tree[node, RIGHT])
    if tree[node, RED]:
        assert not tree[left, RED] and not tree[right, RED]
    assert not left or tree[left, ORDER] < tree[node, ORDER]
    assert not right or tree[right, ORDER] > tree[node, ORDER]
    (left_height, left_sum), (right_height, right_sum) = _check(tree, left), _check(tree, right)
    assert left_height == right_height
    total = left_sum + right_sum + int(tree[node, VALUE])
    assert tree[node, TOTAL] == total
    return left_height + (0 if tree[node, RED] else 1), total
