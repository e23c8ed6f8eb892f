"""The contract of every synopsis, with every component it admits: adding one means adding a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Component, Subtractable
from windrow.aggregates.count import Count, CountRows
from windrow.aggregates.extremes import Max, Min
from windrow.aggregates.moments import Moments
from windrow.aggregates.sums import SumFloats, SumInts, SumWideInts
from windrow.kernels.jit import frozen
from windrow.synopses import SYNOPSES, Synopsis, synopsis
from windrow.synopses.running import Running
from windrow.synopses.snapshot import numpy_of, pack, unpack

COMPONENTS: list[Component] = [
    Count(),
    CountRows(),
    SumInts(),
    SumWideInts(),
    SumFloats(),
    Min(),
    Max(),
    Moments(),
]
PAIRS = [
    pytest.param(name, one, id=f"{name}-{one.name}")
    for name in SYNOPSES
    for one in COMPONENTS
    if name != Running.name or isinstance(one, Subtractable)
]


def partials(component: Component, rows: list[tuple[int, int]], groups: int) -> Any:
    """The words [words, 1, groups] of one pane."""
    words = np.repeat(component.identity[:, None], groups, axis=1)
    cells = np.array([group for group, _ in rows], np.int32)
    dtype = np.float64 if isinstance(component, SumFloats) else np.int64
    component.accumulate(list(words), cells, frozen(np.array([value for _, value in rows], dtype)))
    return words[:, None, :]


@pytest.mark.parametrize(("name", "component"), PAIRS)
@settings(derandomize=True, max_examples=30, deadline=None)
@given(data=st.data())
def test_lock_step_with_recombining(name: str, component: Component, data: st.DataObject) -> None:
    kept: Synopsis = synopsis(component, name)
    panes: list[tuple[int, Any]] = []
    edge, groups = 0, 1
    for _ in range(8):
        edge += data.draw(st.sampled_from([1, 2, 100]))
        groups += data.draw(st.integers(0, 2))
        rows = data.draw(st.lists(st.tuples(st.integers(0, groups - 1), st.integers(-50, 50)), max_size=6))
        pane = partials(component, rows, groups)
        kept.update(np.array([edge]), pane)
        panes.append((edge, pane[:, 0]))
        if data.draw(st.booleans()):
            edges = [one for one, _ in panes]
            panes = panes[data.draw(st.integers(0, len(panes) - 1)) :]
            gone = panes[0][0] - 1
            assert kept.expire(gone) == len(edges) - len(panes)
        if data.draw(st.integers(0, 3)) == 0:
            meta, arrays = kept.snapshot()
            meta, stored = unpack(pack(meta, arrays))
            kept = synopsis(component, name)
            kept.restore(meta, {key: numpy_of(array) for key, array in stored.items()})
        bounds = sorted({panes[0][0] - 1, *(one for one, _ in panes)})
        windows = [(a, b) for a in bounds for b in bounds if a <= b] + [(a, edge) for a in bounds]
        starts, ends = np.array(windows).T
        found = kept.lookup(starts, ends)
        assert found.shape == (len(component.dtypes), len(windows), groups)
        for i, (start, end) in enumerate(windows):
            wanted = np.repeat(component.identity[:, None], groups, axis=1)
            for one, pane in panes:
                if start < one <= end:
                    other = np.repeat(component.identity[:, None], groups, axis=1)
                    other[:, : pane.shape[1]] = pane
                    component.combine(wanted, other)
            got = component.typed(np.ascontiguousarray(found[:, i]))
            for a, b in zip(got, component.typed(wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("component", [one for one in COMPONENTS if not isinstance(one, Subtractable)], ids=str)
def test_a_running_synopsis_refuses_what_cannot_be_subtracted(component: Component) -> None:
    with pytest.raises(ValueError, match=f"{component.name} cannot"):
        synopsis(component, "running")


def test_the_best_synopsis_is_chosen() -> None:
    assert synopsis(SumInts()).name == "running"
    assert synopsis(Max()).name == "basic_interval"
    with pytest.raises(ValueError, match="no synopsis 'landmark'"):
        synopsis(Max(), "landmark")


def test_a_snapshot_of_another_component_is_refused() -> None:
    with pytest.raises(ValueError, match="snapshot"):
        synopsis(Max()).restore(*synopsis(Min()).snapshot())


@pytest.mark.parametrize(("name", "component"), PAIRS)
def test_space_is_bounded_when_panes_expire(name: str, component: Component) -> None:
    kept = synopsis(component, name)
    pane = partials(component, [(0, 1), (3, 2)], 5)
    sizes = []
    for edge in range(1, 3000):
        kept.update(np.array([edge]), pane)
        kept.expire(edge - 10)
        sizes.append(kept.nbytes)
    assert max(sizes[1000:]) <= max(sizes[:1000])
    assert len(kept) == 10
