"""A share group in lock-step with recomputing every window, after every step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Aggregate, aggregate
from windrow.synopses import ComponentSpec, ShareGroup
from windrow.synopses.combining import Combining
from windrow.synopses.dense import Dense
from windrow.synopses.sparse import Sparse
from windrow.synopses.workload import Expected
from windrow.windows.grid import Grid

INT32, INT64, DOUBLE = pa.int32(), pa.int64(), pa.float64()
COLUMNS = (INT32, INT64, DOUBLE, pa.string())
ASKED: list[tuple[str, int | None]] = [
    ("COUNT(*)", None),
    ("COUNT", 0),
    ("SUM", 0),
    ("AVG", 0),
    ("MIN", 0),
    ("VAR_SAMP", 0),
    ("SUM", 1),
    ("MAX", 1),
    ("SUM", 2),
    ("MIN", 2),
    ("MAX", 2),
    ("COUNT", 2),
    ("MIN", 3),
    ("MAX", 3),
]
FOREVER = -(1 << 62)

value_rows = st.tuples(
    st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
    st.none() | st.integers(-(1 << 58), 1 << 58),
    st.none() | st.sampled_from([1e16, -1e16, 1.0, 0.1, -0.0, math.nan, math.inf, -math.inf, 1e-3]),
    st.none() | st.text("abé", max_size=3),
)


Row = tuple[int, Any, tuple[Any, ...]]
"""ts, key, values."""


def recompute(name: str, values: Sequence[Any]) -> Any:
    """The aggregate of plain Python values (None is NULL)."""
    if name == "COUNT(*)":
        return len(values)
    there = [value for value in values if value is not None]
    if name == "COUNT":
        return len(there)
    if not there or (name == "VAR_SAMP" and len(there) < 2):
        return None
    if name in ("MIN", "MAX"):
        choose = min if name == "MIN" else max
        return choose(there, key=lambda x: (x != x, 0 if x != x else x))  # noqa: PLR0124 - NaN is the greatest
    if any(isinstance(x, float) and not math.isfinite(x) for x in there):
        return math.nan if name == "VAR_SAMP" else sum(there)
    exact = [Fraction(x) for x in there]
    if name == "VAR_SAMP":
        return float(statistics.variance(exact))
    if name == "AVG":
        return float(sum(exact) / len(exact))
    return sum(there) if isinstance(there[0], int) else math.fsum(there)


def same(found: Any, wanted: Any) -> bool:
    """Equal, where floats may differ by rounding and NaN equals NaN."""
    if isinstance(found, float) and isinstance(wanted, float):
        if math.isnan(found) or math.isnan(wanted):
            return math.isnan(found) and math.isnan(wanted)
        return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-9)
    return bool(found == wanted and type(found) is type(wanted))


@dataclass
class Reference:
    """All rows ever inserted."""

    rows: list[Row] = field(default_factory=list)

    def window(self, start: int, end: int) -> dict[Any, list[tuple[Any, ...]]]:
        """The values of each group with rows in (start, end]."""
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for ts, key, values in self.rows:
            if start < ts <= end:
                groups.setdefault(key, []).append(values)
        return groups


class Pair:
    """A share group and its reference, fed alike."""

    def __init__(self, key_types: list[pa.DataType], synopsis: str | None, grid: Grid, layout: str | None) -> None:
        self.key_types = key_types
        self.aggregates: list[tuple[str, int | None, Aggregate]] = []
        for name, column in ASKED:
            kind = None if column is None else COLUMNS[column]
            self.aggregates.append((name, column, aggregate(name.removesuffix("(*)"), kind)))
        self.synopsis = synopsis
        self.columns = list(range(len(COLUMNS)))
        self.grid = grid
        self.group = ShareGroup(key_types, self.unique, grid, layout)
        self.reference = Reference()

    @property
    def specs(self) -> list[ComponentSpec]:
        return [
            ComponentSpec(component, None if column is None else self.columns.index(column), self.synopsis)
            for _, column, one in self.aggregates
            for component in one.components
        ]

    @property
    def unique(self) -> list[ComponentSpec]:
        return list(dict.fromkeys(self.specs))

    def insert(self, rows: list[tuple[int, Any, tuple[Any, ...]]]) -> None:
        ts = np.array([row[0] for row in rows], np.int64)
        keys = [pa.array([row[1] for row in rows], kind) for kind in self.key_types]
        values = [pa.array([row[2][i] for row in rows], COLUMNS[i]) for i in self.columns]
        self.group.insert(ts, keys, values)
        self.reference.rows += [(t, key if self.key_types else None, cells) for t, key, cells in rows]

    def check(self, windows: list[tuple[int, int]]) -> None:
        positions = self.group.add_components(self.specs)
        starts, ends = np.array(windows, np.int64).reshape(-1, 2).T
        found = self.group.lookup(starts, ends, positions)
        keys = self.group.dictionary.keys(found.group)[0].to_pylist() if self.key_types else [None] * len(found)
        words = iter(found.words)
        columns = [one.lower([next(words) for _ in one.components]).to_pylist() for _, _, one in self.aggregates]
        order = list(zip(found.window.tolist(), found.group.tolist(), strict=True))
        assert order == sorted(set(order))
        for i, (start, end) in enumerate(windows):
            wanted = self.reference.window(start, end)
            if not self.key_types:
                wanted.setdefault(None, [])
            rows = {keys[row]: row for row in range(len(found)) if found.window[row] == i}
            assert rows.keys() == wanted.keys()
            for key, row in rows.items():
                for (name, column, _), cells in zip(self.aggregates, columns, strict=True):
                    expected = recompute(name, [values[column or 0] for values in wanted[key]])
                    assert same(cells[row], expected), (name, column, start, end, key, cells[row], expected)

    def keep(self, aggregates: list[tuple[str, int | None, Aggregate]]) -> None:
        self.aggregates = aggregates
        places = list(dict.fromkeys(self.group.add_components(self.specs)))
        self.columns = [self.columns[column] for column in self.group.keep_components(places)]
        assert list(self.group.specs) == self.unique

    def expect(self, lengths: list[int]) -> None:
        windows = Expected(tuple((float(length), 1.0) for length in lengths))
        self.group.expect([windows] * len(self.group.specs))

    def convert(self, name: str) -> None:
        if isinstance(self.group._layout, Dense):
            for one in self.group._layout.tracked:
                if isinstance(one.closed, Combining):
                    one.convert(name)

    def turn_sparse(self) -> None:
        if isinstance(self.group._layout, Dense):
            self.group._layout = Sparse.of(self.group._layout, self.group._open.count, self.group.groups)

    def through_a_snapshot(self) -> None:
        restored = ShareGroup(self.key_types, self.unique, self.grid)
        restored.restore(self.group.snapshot())
        assert (restored.groups, restored.panes, restored.grid) == (
            self.group.groups,
            self.group.panes,
            self.group.grid,
        )
        self.group = restored


@pytest.mark.parametrize(
    ("layout", "synopsis"),
    [
        ("dense", None),
        ("dense", "basic_interval"),
        ("dense", "interval"),
        ("dense", "landmark"),
        ("sparse", None),
        ("sparse", "interval"),
        ("dense to sparse", None),
        ("dense to sparse", "basic_interval"),
        ("dense to sparse", "landmark"),
    ],
)
@pytest.mark.parametrize("key", [None, INT32, pa.string()], ids=str)
@settings(derandomize=True, max_examples=10, deadline=None)
@given(data=st.data())
def test_lock_step(key: pa.DataType | None, synopsis: str | None, layout: str, data: st.DataObject) -> None:
    pair = Pair([] if key is None else [key], synopsis, Grid.of([(2, 1)]), layout.partition(" ")[0])
    keys = st.none() | (st.sampled_from("abc") if key == pa.string() else st.integers(0, 6) | st.just(10**9))
    watermark, expired = -20, FOREVER
    for _ in range(6):
        near = st.integers(watermark + 1, watermark + 12)
        ts = near | st.just(watermark + 1000)
        pair.insert(data.draw(st.lists(st.tuples(ts, keys, value_rows), max_size=12)))
        watermark += data.draw(st.sampled_from([0, 1, 5, 9]))
        pair.group.close(watermark)
        edge = watermark if watermark % 2 else watermark - 1
        oldest = max(expired, edge - 40)
        windows = [(max(oldest, end - 6), end) for end in range(oldest + 2, edge + 1, 2)]
        windows += [(oldest, edge), (edge, edge), (max(oldest, edge - 4), edge)]
        pair.check(windows)
        if layout == "dense to sparse" and key is not None and data.draw(st.booleans()):
            pair.turn_sparse()
            pair.check(windows)
        action = data.draw(st.sampled_from(["nothing", "expire", "purge", "snapshot", "keep", "expect", "convert"]))
        if action in ("expire", "purge"):
            expired = max(expired, edge - data.draw(st.sampled_from([0, 4, 10])))
            pair.group.expire(expired)
        if action == "purge":
            pair.group.purge()
        if action == "snapshot":
            pair.through_a_snapshot()
        if action == "expect":
            pair.expect(data.draw(st.lists(st.integers(1, 12), max_size=3)))
        if action == "convert":
            pair.convert(data.draw(st.sampled_from(["basic_interval", "interval", "landmark"])))
            pair.check(windows)
        if action == "keep":
            order = data.draw(st.permutations(pair.aggregates))
            pair.keep(order[: data.draw(st.integers(len(order) // 2, len(order)))])


def simple(key_types: list[pa.DataType], step: int = 10) -> ShareGroup:
    specs = [ComponentSpec(component, 0) for component in aggregate("SUM", INT32).components]
    return ShareGroup(key_types, specs, Grid.of([(step, 0)]))


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, INT32)


def test_groups_that_left_every_window_are_purged() -> None:
    group = simple([INT64])
    for second in range(300):
        keys = pa.array(np.arange(100) + 100 * second)
        group.insert(np.full(100, second * 10, np.int64), [keys], [ints(*range(100))])
        group.close(second * 10)
        group.expire(second * 10 - 50)
        assert group.panes <= 5
        assert group.groups <= 1600
        if second == 20:
            early = group.nbytes
    assert group.nbytes <= early
    group.expire(10**6)
    group.purge()
    assert (group.groups, group.panes) == (0, 0)
    assert len(group.lookup([0], [10**6], [0])) == 0


def test_a_gap_of_a_year_costs_nothing() -> None:
    group = simple([INT32])
    year = 365 * 86400 * 1_000_000
    group.insert(np.array([5, year + 5, -year]), [ints(1, 2, 3)], [ints(7, 8, 9)])
    group.close(2 * year)
    assert group.panes == 3
    found = group.lookup([FOREVER, 0, 10], [0, 10, 2 * year], [0])
    assert found.window.tolist() == [0, 1, 2]
    assert found.words[0][0].tolist() == [9, 7, 8]
    assert group.nbytes < 10_000


def test_without_keys_every_window_has_one_row() -> None:
    group = simple([])
    assert group.lookup([0, 10], [10, 20], [0, 1]).words[0][0].tolist() == [0, 0]
    group.insert(np.array([5]), [], [ints(4)])
    group.close(10)
    found = group.lookup([0, 10], [10, 20], [0, 1])
    assert (found.window.tolist(), found.group.tolist()) == ([0, 1], [0, 0])
    assert [words[0].tolist() for words in found.words] == [[4, 0], [1, 0]]


def test_a_component_added_later_knows_the_rows_from_then_on() -> None:
    group = simple([INT32])
    group.insert(np.array([5]), [ints(1)], [ints(4)])
    group.close(10)
    largest, *_ = group.add_components([ComponentSpec(aggregate("MAX", INT32).components[0], 0)])
    assert group.add_components([ComponentSpec(aggregate("MAX", INT32).components[0], 0)]) == [largest]
    group.insert(np.array([15]), [ints(1)], [ints(3)])
    group.close(20)
    assert group.lookup([0, 10], [20, 20], [largest]).words[0][0].tolist() == [3, 3]


def test_a_new_grid_applies_to_rows_that_come_later() -> None:
    group = simple([])
    group.insert(np.array([11]), [], [ints(1)])
    group.set_grid(Grid.of([(5, 0)]))
    group.insert(np.array([12, 17]), [], [ints(2, 4)])
    group.close(20)
    assert group.panes == 2
    assert group.lookup([10, 15], [15, 20], [0]).words[0][0].tolist() == [2, 5]


@pytest.mark.parametrize(
    ("before", "closed", "newest", "at"),
    [
        ([], None, 13, 13),
        ([(13, 20)], None, 13, 13),
        ([(7, 10), (13, 20)], 10, 13, 13),  # one is closed, the other one is being filled
        ([(9, 10)], None, 13, 13),  # which it knows no row of
        ([(13, 15), (14, 20)], None, 14, 16),  # two names for what is being filled: behind the first of them
        ([(13, 15), (14, 60)], None, 14, 16),
        ([(13, 15), (14, 20)], 15, 14, 16),
        ([(13, 15)], 17, 14, 16),  # a heartbeat has closed it, so nothing is being filled
        ([(13, 15)], 15, 15, 15),
    ],
)
def test_the_pane_that_is_being_filled_ends(
    before: list[tuple[int, int]], closed: int | None, newest: int, at: int
) -> None:
    """`before`: rows, and the edge that the grid of their time has for them. Behind `at` nothing is, but new panes."""
    group = ShareGroup([], [ComponentSpec(aggregate("COUNT").components[0])], Grid(((10, 0),)))
    for ts, edge in before:
        group.set_grid(Grid(((edge, 0),)))
        group.insert(np.array([ts]), [], [])
    if closed is not None:
        group.close(closed)
    grid = Grid(((4, 0),))
    assert group.end_pane(newest, grid) == at
    group.set_grid(grid.with_cuts([at]))
    following = max(at, closed or at) + 1
    group.insert(np.array([following]), [], [])
    group.close(100)
    edges = group.closed_edges.tolist()
    assert edges == sorted(set(edges)) and edges[-1] == grid.ceil(following)
    ((counts,),) = group.lookup([FOREVER, at], [at, 100], [0]).words
    assert counts.tolist() == [len(before), 1]


def test_count_of_values_is_the_row_count_until_a_null_comes() -> None:
    group = simple([INT32])
    group.insert(np.array([5, 6]), [ints(1, 2)], [ints(4, 4)])
    group.close(10)
    before = group.nbytes
    group.insert(np.array([15, 16]), [ints(1, 2)], [ints(None, 4)])
    group.close(20)
    assert group.nbytes > before
    assert group.lookup([0, 10], [20, 20], [1]).words[0][0].tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_components_that_are_not_kept_are_freed(layout: str) -> None:
    parts = [*aggregate("MIN", pa.string()).components, *aggregate("SUM", INT32).components]
    specs = [ComponentSpec(one, i // 2) for i, one in enumerate(parts)]
    group = ShareGroup([INT32], specs, Grid.of([(10, 0)]), layout)
    names = pa.array([f"a name of some length: {i}" for i in range(500)])
    group.insert(np.arange(500), [ints(*range(500))], [names, ints(*range(500))])
    group.close(490)
    before = group.nbytes
    assert group.keep_components([3, 2]) == [1]
    assert [(spec.component.name, spec.column) for spec in group.specs] == [("count", 0), ("sum_ints", 0)]
    # 500 names of 24 characters or so, and a word for each cell.
    assert before - group.nbytes > 500 * (24 + 8)
    assert not group._ranks
    group.insert(np.array([500]), [ints(7)], [ints(9)])
    group.close(500)
    found = group.lookup([490], [500], [0, 1])
    assert sorted(found.words[1][0].tolist()) == [9, *range(491, 500)]
    (again, _) = group.add_components([ComponentSpec(parts[0], 1), ComponentSpec(parts[1], 1)])
    assert group.lookup([-10], [500], [again]).words[0][0].null_count == 500
    assert group.keep_components([]) == []
    assert len(group.lookup([490], [500], [])) == 10


def test_rows_in_closed_panes_are_refused_and_nothing_is_taken_in() -> None:
    group = simple([])
    group.insert(np.array([5]), [], [ints(1)])
    group.close(10)
    with pytest.raises(ValueError, match="closed already"):
        group.insert(np.array([15, 10]), [], [ints(1, 1)])
    group.close(20)
    assert group.panes == 1


def test_many_groups_and_panes_with_partial_presence() -> None:
    rng = np.random.default_rng(7)
    rows = 50_000
    ts, key, value = np.sort(rng.integers(1, 1001, rows)), rng.integers(0, 3000, rows), rng.integers(-9, 9, rows)
    group = simple([INT64])
    group.add_components([ComponentSpec(aggregate("MAX", INT32).components[0], 0)])
    for part in np.array_split(np.arange(rows), 7):
        group.insert(ts[part], [pa.array(key[part])], [pa.array(value[part], INT32)])
        group.close(int(ts[part[-1]]) - 1)
    group.close(1000)
    ends = np.arange(10, 1001, 10)
    found = group.lookup(ends - 70, ends, [0, 2])
    keys = group.dictionary.keys(found.group)[0].to_numpy()
    for i, end in enumerate(ends):
        inside = (ts > end - 70) & (ts <= end)
        wanted = np.unique(key[inside])
        chosen = found.window == i
        order = np.argsort(keys[chosen])
        assert np.array_equal(keys[chosen][order], wanted)
        sums = np.bincount(key[inside], value[inside], 3000)[wanted]
        assert np.array_equal(found.words[0][0][chosen][order], sums)
        top = np.full(3000, -100)
        np.maximum.at(top, key[inside], value[inside])
        assert np.array_equal(found.words[1][0][chosen][order], top[wanted])


def test_a_snapshot_of_another_share_group_is_refused() -> None:
    other = ShareGroup([], [], Grid.of([(10, 0)]))
    with pytest.raises(ValueError, match="components"):
        other.restore(simple([]).snapshot())


def test_many_keys_that_come_and_go_take_the_sparse_layout_and_bounded_space() -> None:
    rng = np.random.default_rng(3)
    group = simple([INT64])
    group.add_components([ComponentSpec(aggregate("MAX", INT32).components[0], 0)])
    sizes, rows = [], 20_000
    for batch in range(12):
        # 200 panes a batch, a fresh range of keys every other one: dense would be 600 panes x 80,000 groups.
        ts = np.sort(rng.integers(batch * 2000 + 1, (batch + 1) * 2000, rows))
        keys = rng.integers(0, 40_000, rows) + 40_000 * (batch // 2)
        values = rng.integers(0, 1000, rows).astype(np.int32)
        group.insert(ts, [pa.array(keys)], [pa.array(values)])
        edge = (batch + 1) * 2000
        group.close(edge)
        found = group.lookup([edge - 1000, edge - 1500], [edge, edge - 500], [0, 1, 2])
        names = group.dictionary.keys(found.group)[0].to_numpy()
        for i, (start, end) in enumerate([(edge - 1000, edge), (edge - 1500, edge - 500)]):
            inside = (ts > start) & (ts <= end)
            chosen = found.window == i
            order = np.argsort(names[chosen])
            wanted, place = np.unique(keys[inside], return_inverse=True)
            assert np.array_equal(names[chosen][order], wanted)
            assert np.array_equal(found.words[0][0][chosen][order], np.bincount(place, values[inside]))
            assert np.array_equal(found.words[1][0][chosen][order], np.bincount(place))
            top = np.zeros(len(wanted), np.int64)
            np.maximum.at(top, place, values[inside])
            assert np.array_equal(found.words[2][0][chosen][order], top)
        group.expire(edge - 4000)
        sizes.append(group.nbytes)
    assert group.layout == "sparse"
    assert max(sizes[6:]) <= 1.5 * max(sizes[:6]) < 20e6
    group.expire(10**6)
    group.purge()
    assert (group.groups, group.nbytes < 100_000) == (0, True)


def test_strings_under_min_and_max_are_purged() -> None:
    specs = [ComponentSpec(one, 0) for one in aggregate("MIN", pa.string()).components]
    group = ShareGroup([], specs, Grid.of([(10, 0)]))
    group.add_components([ComponentSpec(aggregate("MAX", pa.string()).components[0], 0)])
    for second in range(1, 200):
        names = pa.array([f"{second:05}-{i}" for i in range(50)])
        group.insert(np.full(50, second * 10), [], [names])
        group.close(second * 10)
        found = group.lookup([second * 10 - 30], [second * 10], [0, 2])
        assert found.words[0][0].to_pylist() == [f"{max(1, second - 2):05}-0"]
        assert found.words[1][0].to_pylist() == [f"{second:05}-9"]
        group.expire(second * 10 - 30)
    assert len(group._ranks[0]) <= 50 * 8
