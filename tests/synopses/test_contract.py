"""The contract of every synopsis, with every component it admits: adding one means adding a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from windrow.aggregates import Component, Subtractable
from windrow.aggregates.count import Count, CountRows
from windrow.aggregates.extremes import Max, MaxText, Min, MinText
from windrow.aggregates.moments import Moments
from windrow.aggregates.sums import SumFloats, SumInts, SumWideInts, settle
from windrow.kernels import combine
from windrow.kernels.jit import Codes, Ints, frozen
from windrow.synopses import SYNOPSES, Synopsis, combining, synopsis
from windrow.synopses.registry import converted
from windrow.synopses.running import Running
from windrow.synopses.snapshot import numpy_of, pack, unpack
from windrow.synopses.workload import Expected


@dataclass(frozen=True)
class Affine(Component):
    """The maps x -> (2v + 1)·x + v·v + 7 one after the other: another order, or a value left out, gives another map."""

    name = "affine"
    op = combine.AFFINE
    dtypes = (np.int64, np.int64)

    @property
    def identity(self) -> Ints:
        return np.array([1, 0])

    def accumulate(self, words: Sequence[Ints], cells: Codes, values: NDArray[Any]) -> None:
        for cell, value in zip(cells.tolist(), values.tolist(), strict=True):
            one = np.array([words[0][cell], words[1][cell]]).reshape(2, 1)
            self.combine(one, np.array([[2 * value + 1], [value * value + 7]]))
            words[0][cell], words[1][cell] = one[:, 0]


COMPONENTS: list[Component] = [
    Count(),
    CountRows(),
    SumInts(),
    SumWideInts(),
    SumFloats(),
    Min(),
    Max(),
    MinText(),
    MaxText(),
    Moments(),
    Affine(),
]
PAIRS = [
    pytest.param(name, one, id=f"{name}-{one.name}")
    for name in SYNOPSES
    for one in COMPONENTS
    if name != Running.name or isinstance(one, Subtractable)
]

SMALL = st.integers(-50, 50)
EXTREMES = st.sampled_from([-(1 << 63), -(1 << 63) + 1, (1 << 63) - 1, 1 << 32, -(1 << 32)])
FLOATS = st.sampled_from([1e16, -1e16, 0.1, -0.3, 1.0, -0.0, 5e-324, math.inf, -math.inf, math.nan])


def values_of(component: Component) -> st.SearchStrategy[Any]:
    """What a component may meet: sums wrap, extremes are real values, floats have everything."""
    if isinstance(component, SumFloats):
        return SMALL.map(float) | FLOATS
    return SMALL if isinstance(component, Moments | Affine) else SMALL | EXTREMES


def partials(component: Component, rows: list[tuple[int, Any]], groups: int) -> Any:
    """The words [words, groups] of one pane."""
    words = np.repeat(component.identity[:, None], groups, axis=1)
    cells = np.array([group for group, _ in rows], np.int32)
    dtype = np.float64 if isinstance(component, SumFloats) else np.int64
    component.accumulate(list(words), cells, frozen(np.array([value for _, value in rows], dtype)))
    return words


class Recombined:
    """The reference: every pane, combined one by one from the left for every window."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.panes: list[tuple[int, Any]] = []

    def windows(self, groups: int) -> dict[tuple[int, int], Any]:
        """The words [words, groups] of the panes i..j-1, for all i <= j."""
        found = {}
        count = len(self.panes)
        for i in range(count + 1):
            total = np.repeat(self.component.identity[:, None], groups, axis=1)
            found[i, i] = total.copy()
            for j in range(i, count):
                pane = np.repeat(self.component.identity[:, None], groups, axis=1)
                pane[:, : self.panes[j][1].shape[1]] = self.panes[j][1]
                self.component.combine(total, pane)
                found[i, j + 1] = total.copy()
        return found


def assert_words(component: Component, found: Any, wanted: Any) -> None:
    """Integers to the bit; floats as far as the order of additions allows."""
    found, wanted = np.ascontiguousarray(found), np.ascontiguousarray(wanted)
    if isinstance(component, SumFloats):
        ours, theirs = settle(*component.typed(found)), settle(*component.typed(wanted))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    elif isinstance(component, Moments):
        for ours, theirs in zip(component.typed(found), component.typed(wanted), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(found, wanted)


def check(kept: Synopsis, reference: Recombined, groups: int, data: st.DataObject) -> None:
    """All windows in some order, and some of the groups of each."""
    component, count = reference.component, len(reference.panes)
    wanted = reference.windows(groups)
    shape = data.draw(st.sampled_from(["advancing", "together", "alone", "any"]), label="windows")
    if shape == "advancing":
        width = data.draw(st.integers(0, count))
        pairs = [(max(0, end - width), end) for end in range(count + 1)]
    elif shape == "together":
        pairs = [(start, end) for end in (count, max(0, count - 2)) for start in range(end + 1)]
    elif shape == "alone":
        pairs = [data.draw(st.sampled_from(sorted(wanted)))]
    else:
        pairs = data.draw(st.permutations(sorted(wanted)))[:60]
    edges = [edge for edge, _ in reference.panes]
    before = [edges[0] - 1 if edges else 0, *edges]
    found = kept.lookup(np.array([before[a] for a, _ in pairs]), np.array([before[b] for _, b in pairs]))
    assert found.shape == (len(component.dtypes), len(pairs), groups)
    for i, pair in enumerate(pairs):
        assert_words(component, found[:, i], wanted[pair])
    # Only the groups that are present, which are not the same in every window.
    present = [np.flatnonzero(data.draw(st.integers(0, 2**groups - 1)) >> np.arange(groups) & 1) for _ in pairs[:5]]
    offsets = np.cumsum([0, *(len(one) for one in present)])
    out = np.empty((len(component.dtypes), int(offsets[-1])), np.int64)
    first, last = np.array(pairs[:5], np.int64).reshape(-1, 2).T.copy()
    kept.answer(first, last, groups, offsets, np.concatenate(present).astype(np.int32), out)
    for i, pair in enumerate(pairs[:5]):
        assert_words(component, out[:, offsets[i] : offsets[i + 1]], wanted[pair][:, present[i]])


@pytest.mark.parametrize(("name", "component"), PAIRS)
@settings(derandomize=True, max_examples=15, deadline=None)
@given(data=st.data())
def test_lock_step_with_recombining(name: str, component: Component, data: st.DataObject) -> None:
    kept: Synopsis = synopsis(component, name)
    reference = Recombined(component)
    edge, groups = 0, 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combining, "SORTING", data.draw(st.sampled_from([0, 50])))
        patch.setattr(combining, "CHUNK", data.draw(st.sampled_from([3, 4096])))
        for _ in range(7):
            groups += data.draw(st.integers(0, 2))
            fresh, edges = [], []
            for _ in range(data.draw(st.sampled_from([0, 1, 1, 2, 5, 11]))):
                edge += data.draw(st.sampled_from([1, 1, 2, 100]))
                rows = st.lists(st.tuples(st.integers(0, groups - 1), values_of(component)), max_size=5)
                fresh.append(partials(component, data.draw(rows), groups))
                edges.append(edge)
            if fresh:
                # Open panes are in any order, and some of them stay open.
                order = data.draw(st.permutations(range(len(fresh) + 1)))[: len(fresh)]
                slots = np.full((len(component.dtypes), len(fresh) + 1, groups), 77, np.int64)
                slots[:, order] = np.stack(fresh, axis=1)
                kept.update(np.array(edges), slots, np.array(order))
                reference.panes += zip(edges, fresh, strict=True)
            groups = max(groups, kept.groups)
            if kept.groups == groups:
                check(kept, reference, groups, data)
            step = data.draw(st.sampled_from(["expire", "expire", "select", "snapshot", "prepare", "widen", "convert"]))
            if step == "expire" and reference.panes:
                gone = data.draw(st.integers(0, len(reference.panes)))
                upto = reference.panes[gone][0] - 1 if gone < len(reference.panes) else edge
                assert kept.expire(upto) == gone
                reference.panes = reference.panes[gone:]
            elif step == "select" and kept.groups == groups and groups > 1:
                live = np.sort(np.array(data.draw(st.permutations(range(groups)))[: groups - 1]))
                kept.select(live, groups + data.draw(st.integers(-1, 3)))
                groups -= 1
                panes = [(at, _padded(component, pane, groups + 1)[:, live]) for at, pane in reference.panes]
                reference.panes = panes
            elif step == "snapshot":
                meta, arrays = kept.snapshot()
                meta, stored = unpack(pack(meta, arrays))
                kept = synopsis(component, name)
                kept.restore(meta, {key: numpy_of(array) for key, array in stored.items()})
                assert pack(*kept.snapshot()) == pack(meta, arrays)
            elif step == "prepare":
                kept.prepare(data.draw(st.lists(st.integers(1, 20), max_size=4)))
            elif step == "widen":
                kept.reserve(kept.words.shape[2] + 3)
            elif step == "convert":
                # To another synopsis and back: the panes stay as they are.
                other = "basic_interval" if name != "basic_interval" else "interval"
                kept = converted(converted(kept, other, Expected()), name, Expected(((7.0, 1.0),)))
            if kept.groups == groups:
                check(kept, reference, groups, data)


def test_the_order_matters_to_the_component_that_checks_it() -> None:
    left, right = (partials(Affine(), [(0, value)], 1) for value in (3, -5))
    one, other = left.copy(), right.copy()
    Affine().combine(one, right)
    Affine().combine(other, left)
    assert not np.array_equal(one, other)


def _padded(component: Component, pane: Any, groups: int) -> Any:
    padded = np.repeat(component.identity[:, None], groups, axis=1)
    padded[:, : pane.shape[1]] = pane
    return padded


@pytest.mark.parametrize("component", [one for one in COMPONENTS if not isinstance(one, Subtractable)], ids=str)
def test_a_running_synopsis_refuses_what_cannot_be_subtracted(component: Component) -> None:
    with pytest.raises(ValueError, match=f"cannot be done with {component.told}"):
        synopsis(component, "running")


def test_the_best_synopsis_is_chosen() -> None:
    assert synopsis(SumInts()).name == "running"
    assert synopsis(Max()).name == "basic_interval"
    with pytest.raises(ValueError, match="no synopsis 'tree'"):
        synopsis(Max(), "tree")


@pytest.mark.parametrize("name", [name for name in SYNOPSES if name != Running.name])
def test_a_snapshot_of_another_component_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="snapshot"):
        synopsis(Max(), name).restore(*synopsis(Min(), name).snapshot())
    with pytest.raises(ValueError, match="snapshot"):
        synopsis(SumInts(), name).restore(*synopsis(SumInts(), "running").snapshot())


@pytest.mark.parametrize(("name", "component"), PAIRS)
def test_space_is_bounded_when_panes_expire(name: str, component: Component) -> None:
    kept = synopsis(component, name)
    kept.prepare([8])
    pane = partials(component, [(0, 1), (3, 2)], 5)[:, None, :]
    sizes = []
    for edge in range(1, 3000):
        kept.update(np.array([edge]), pane)
        kept.expire(edge - 10)
        sizes.append(kept.nbytes)
    assert max(sizes[1000:]) <= max(sizes[:1000])
    assert len(kept) == 10


@pytest.mark.parametrize("name", SYNOPSES)
@pytest.mark.parametrize("component", [Min(), Max(), Count()], ids=lambda one: one.name)
def test_few_groups_of_many_get_the_same_answers(name: str, component: Component) -> None:
    if name == Running.name and not isinstance(component, Subtractable):
        return
    rng = np.random.default_rng(3)
    panes, groups = 70, 300
    made = synopsis(component, name, groups)
    made.prepare([9, 20, 40])
    for edge in range(0, panes, 10):
        made.update(np.arange(edge, edge + 10), rng.integers(-1000, 1000, (1, 10, groups)))
    made.expire(4)
    starts = rng.integers(3, panes - 2, 60)
    ends = np.minimum(starts + rng.choice([0, 1, 9, 20, 21, 40], 60), panes - 1)
    whole = made.lookup(starts, ends)
    sizes = rng.choice([0, 1, 5, 37, 38, 299], 60)
    chosen = [np.sort(rng.permutation(groups)[:size]) for size in sizes]
    for few in (slice(0, 60), np.flatnonzero(sizes < 10)):
        picked = np.arange(60)[few]
        present = np.concatenate([chosen[i] for i in picked]).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(sizes[picked])])
        out = np.empty((1, len(present)), np.int64)
        made.answer(*made.range_of(starts[picked], ends[picked]), groups, offsets, present, out)
        assert out[0].tolist() == np.concatenate([whole[0, i, chosen[i]] for i in picked]).tolist()
