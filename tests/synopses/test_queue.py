"""The queue of rows, in lock-step with a list: what is there, and that memory follows it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.synopses.matrix import Matrix
from windrow.synopses.queue import FEWEST, Queue


@pytest.mark.parametrize("shape", [(), (3,), (2, 1)], ids=str)
@given(steps=st.lists(st.tuples(st.integers(0, 70), st.floats(0, 1)), max_size=30))
def test_lock_step_with_a_list(shape: tuple[int, ...], steps: list[tuple[int, float]]) -> None:
    queue, model = Queue(np.int32, *shape), []
    for number, (more, gone) in enumerate(steps):
        rows = np.arange(more * int(np.prod(shape)), dtype=np.int32).reshape(more, *shape) + 1000 * number
        queue.push(rows)
        model += rows.tolist()
        queue.drop(int(gone * len(model)))
        del model[: int(gone * len(model))]
        assert len(queue) == len(model) and queue.rows.tolist() == model
        assert len(queue.data) <= max(FEWEST, 8 * len(model), 2 * (len(model) + more))
        twin = queue.copied()
        queue.load(queue.rows.copy().ravel())
        assert queue.rows.tolist() == twin.rows.tolist() == model
        twin.push(rows)
        assert len(queue) == len(model)


def test_groups_come_and_go() -> None:
    matrix = Matrix(np.array([7, -1]), 2)
    matrix.push(np.arange(12).reshape(3, 2, 2))
    matrix.widen(3)
    assert matrix.stride == 3 and matrix.rows[:, :, 2].tolist() == [[7, -1]] * 3
    matrix.drop(1)
    matrix.select(np.array([1]), 4)
    assert matrix.rows[:, :, 0].tolist() == [[5, 7], [9, 11]] and matrix.rows[0, 1].tolist() == [7, -1, -1, -1]
    twin = matrix.twin()
    twin.load_groups(np.array([1, 2]), 1, 1)
    assert twin.rows[0, :, 0].tolist() == [1, 2] and len(matrix) == 2
