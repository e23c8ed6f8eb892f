"""The chooser: the rule of thumb of thesis 8.3.1, memory, no swinging; and changes that nobody notices."""

from __future__ import annotations

from math import inf, log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windrow.aggregates import aggregate
from windrow.aggregates.extremes import Max
from windrow.aggregates.sums import SumInts
from windrow.synopses import ComponentSpec, ShareGroup
from windrow.synopses.chooser import better, choose, expected_costs
from windrow.synopses.dense import Dense
from windrow.synopses.workload import Expected, Seen
from windrow.windows.grid import Grid


def windows(*lengths: float, rate: float = 1.0) -> Expected:
    return Expected(tuple((length, rate) for length in lengths))


def test_what_subtracts_runs() -> None:
    assert choose(SumInts(), windows(*range(1, 1000))).name == "running"


@pytest.mark.parametrize("b", [64, 1024, 65536])
def test_the_rule_of_thumb(b: int) -> None:
    """From b / log b windows that end together on, a basic interval synopsis is cheaper than an interval synopsis."""
    fewest = b / log2(b)
    for rate in (0.1, 1.0, 10.0):
        few = expected_costs(windows(*[b] * int(0.8 * fewest), rate=rate))
        many = expected_costs(windows(*[b] * int(1.2 * fewest + 1), rate=rate))
        assert few["interval"] < few["basic_interval"]
        assert many["interval"] > many["basic_interval"]
    assert choose(Max(), windows(*[b] * int(fewest / 2))).name != "basic_interval"
    # With very many windows even the three reads of landmarks are more than one scan.
    assert choose(Max(), windows(*range(1, b))).name == "basic_interval"


def test_a_long_window_that_is_looked_up_often_gets_landmarks() -> None:
    assert choose(Max(), windows(100_000)).name == "landmark"
    assert choose(Max(), windows(100_000, rate=0.01)).name == "interval"
    assert choose(Max(), windows(3)).name == "basic_interval"
    assert choose(Max(), windows(100_000, inf)).name == "interval"


def test_a_reason_has_the_numbers() -> None:
    reason = choose(Max(), windows(600, 60)).reason
    assert "2 windows of up to 600 panes, 2 lookups per pane" in reason
    assert "basic_interval 601, interval 17.2, landmark 11 combines per pane" in reason


def test_memory_limits_the_extra_rows() -> None:
    many_groups = 8 * 1_000_000
    assert choose(Max(), windows(100_000), row_bytes=many_groups).name == "basic_interval"


def test_a_change_has_to_pay_for_itself() -> None:
    seen = Seen(panes=10)
    assert better("basic_interval", Expected(), seen, 8, panes=1000) == "basic_interval"
    seen.look(1, 1000, 10, 1000)
    assert better("basic_interval", Expected(), seen, 8, panes=1000) == "basic_interval"
    seen.look(2, 2000, 20, 2000)
    assert better("basic_interval", Expected(), seen, 8, panes=1000) == "interval"
    assert better("interval", Expected(), seen, 8, panes=1000) == "interval"


class Fed:
    """A share group that is checked against all rows at every lookup."""

    def __init__(self) -> None:
        specs = [ComponentSpec(aggregate("MAX", pa.int64()).components[0], 0)]
        specs += [ComponentSpec(aggregate("SUM", pa.float64()).components[0], 1)]
        self.group = ShareGroup([pa.int64()], specs, Grid.of([(1, 0)]))
        self.rng = np.random.default_rng(3)
        self.rows: list[tuple[Any, ...]] = []
        self.now = 0
        self.names = [self.synopses]

    @property
    def synopses(self) -> tuple[str, ...]:
        layout = self.group._layout
        assert isinstance(layout, Dense)
        return tuple(one.closed.name for one in layout.tracked[1:])

    def feed(self, panes: int) -> None:
        ts = np.arange(self.now + 1, self.now + panes + 1)
        keys, ints = self.rng.integers(0, 4, panes), self.rng.integers(-99, 99, panes)
        self.group.insert(ts, [pa.array(keys)], [pa.array(ints), pa.array(ints / 4)])
        self.rows = [*self.rows, *zip(ts.tolist(), keys.tolist(), ints.tolist(), strict=True)][-400:]
        self.now += panes
        self.group.close(self.now)
        if self.synopses != self.names[-1]:
            self.names.append(self.synopses)

    def check(self, length: int) -> None:
        found = self.group.lookup([self.now - length], [self.now], [0, 1])
        wanted: dict[int, list[int]] = {}
        for ts, key, value in self.rows:
            if ts > self.now - length:
                wanted.setdefault(key, []).append(value)
        (keys,) = self.group.keys(found)
        (largest,), (sums, errors) = found.words
        assert dict(zip(keys.to_pylist(), largest.tolist(), strict=True)) == {k: max(v) for k, v in wanted.items()}
        total = dict(zip(keys.to_pylist(), (sums + errors).tolist(), strict=True))
        assert total == {k: sum(v) / 4 for k, v in wanted.items()}
        self.group.expire(self.now - 300)

    def through_a_snapshot(self) -> None:
        restored = ShareGroup([pa.int64()], self.group.specs, Grid.of([(1, 0)]))
        restored.restore(self.group.snapshot())
        assert restored.snapshot() == self.group.snapshot()
        self.group = restored


def test_changes_while_running_lose_no_answer() -> None:
    fed = Fed()
    for _ in range(2):
        # Lone lookups of a long window: intervals pay, from soon after the beginning.
        for length in [250] * 60 + [299, 3, 0]:
            fed.feed(1)
            fed.check(length)
        fed.through_a_snapshot()
        assert fed.synopses == ("interval", "interval")
        # Hardly any lookups: intervals are built for nothing.
        for _ in range(40):
            fed.feed(1000)
            fed.check(290)
        fed.through_a_snapshot()
        assert fed.synopses == ("basic_interval", "basic_interval")
    names = [one[0] for one in fed.names]
    assert names == ["basic_interval", "interval"] * 2 + ["basic_interval"]


def test_windows_that_come_and_go_rebuild_the_landmarks() -> None:
    fed = Fed()
    fed.group.expect([windows(100), windows(100)])
    assert fed.synopses == ("landmark", "landmark")
    for lengths in ([100], [100, 250], [30], []):
        fed.group.expect([windows(*lengths), windows(*lengths)])
        for length in (250, 100, 30, 31, 60, 7, 1):
            fed.feed(40)
            fed.check(length)
    fed.through_a_snapshot()
    fed.feed(10)
    fed.check(33)
