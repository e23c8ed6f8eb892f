"""Every order, method and evaluation of a join finds the same results; floors run, and agree with DuckDB."""

from __future__ import annotations

from pathlib import Path

from benchmarks.joins import floors, intervals, orders, shared
from benchmarks.joins.predicted import predicted
from benchmarks.joins.synthetic import TABLE_5_5, Evaluation, Stream, Tuples, seconds

SMALL = (Stream(5, 10, 8), Stream(1, 10, 20), Stream(2, 15, 4))


def test_orders_and_methods_give_the_same_results() -> None:
    tuples = Tuples(SMALL, units=40)
    every = Evaluation.lazy_restore(2)
    found = {
        seconds(tuples, order, every, nested_loops=nested_loops, epochs=5)[1]
        for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0))
        for nested_loops in (True, False)
    }
    assert len(found) == 1
    assert found.pop() > 0


def test_restoring_finds_what_eager_evaluation_does_and_lazy_loses_some() -> None:
    tuples = Tuples(SMALL, units=40)
    every = 1.5  # the windows are full at a multiple of it, so all three look at the same stretch of time
    turns = round(every * tuples.unit)
    eager = seconds(tuples, (1, 0, 2), Evaluation.eager(), nested_loops=False, epochs=8 * turns)[1]
    restored = seconds(tuples, (1, 0, 2), Evaluation.lazy_restore(every), nested_loops=False, epochs=8)[1]
    lazy = seconds(tuples, (1, 0, 2), Evaluation.lazy(every), nested_loops=False, epochs=8)[1]
    assert restored == eager
    assert lazy < restored


def test_the_best_order_is_predicted_to_be_the_best() -> None:
    costs = [predicted(TABLE_5_5, order) for order in orders.ORDERS]
    assert costs == [16_200, 21_000, 42_600, 135_150]


def test_figure_5_2(tmp_path: Path) -> None:
    found = orders.run(quick=True, plots=tmp_path)
    best, *_, worst = found["lazy, restore, nested loops"]
    assert best < worst
    assert (tmp_path / "joins_orders.png").stat().st_size > 1000


def test_figures_5_3_and_5_4() -> None:
    held = intervals.shape(intervals.run(quick=True, plots=None))
    assert held["nested loops lazy"] and held["hash lazy"] and held["nested loops grows"]


def test_shared_joins() -> None:
    found = shared.run(quick=True)
    assert min(found.values()) > 0.5 and max(found.values()) > 1.5


def test_floors() -> None:
    rates = floors.run(quick=True)
    assert rates["δ*: operators"] > 100_000
    assert rates["join: operators"] > rates["join: operators, 1,000 ticks per epoch"]
