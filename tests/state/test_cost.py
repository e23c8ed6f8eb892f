"""What calls cost, in rows looked at rather than seconds, and that state stays what the live rows justify."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.kernels.jit import Codes, Ints
from windrow.state.adaptive import Adaptive
from windrow.state.buffer import SPARE, Buffer
from windrow.state.calendar import ROWS_EACH, Calendar
from windrow.state.fifo import Fifo
from windrow.state.hashed import Hashed
from windrow.state.listed import Listed
from windrow.state.rows import NEVER, Rows

SCHEMA = pa.schema([("v", pa.int64())])


def rows_at(ts: Ints, exp: Ints) -> Rows:
    return Rows(pa.record_batch([pa.array(ts)], schema=SCHEMA), ts, exp)


def keys(ts: Ints) -> list[Codes]:
    return [(ts % 100).astype(np.int32)]


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("lifetimes", ["uniform", "skewed", "bursts", "tied"])
def test_a_calendar_looks_at_few_rows_per_row_that_expires(step: int, lifetimes: str) -> None:
    numbers = np.random.default_rng(1)
    buffer = Calendar(SCHEMA, 1)
    given, calls = 0, 0
    for since in range(0, 20_000, step):
        ts = np.arange(since + 1, since + step + 1)
        match lifetimes:
            case "uniform":
                exp = ts + numbers.integers(1, 5000, step)
            case "skewed":
                exp = ts + np.minimum(numbers.pareto(0.5, step) * 10 + 1, 1e15).astype(np.int64)
            case "bursts":
                exp = (ts // 3000 + 2) * 3000 + numbers.integers(0, 5, step)
            case _:
                exp = (ts // 1000 + 1) * 1000 + 1
        buffer.insert(rows_at(ts, exp), keys(ts))
        given += len(buffer.expire(since + step))
        buffer.settle()
        calls += 1
    assert given > 8000
    # Once when its day begins, once when it leaves the heap of that day; a few wait for another lap.
    assert buffer.looked <= 2.5 * given + ROWS_EACH * 20
    assert buffer.passed <= 2 * (given + calls) + 10_000


def test_a_calendar_adapts_to_rows_that_live_longer() -> None:
    buffer = Calendar(SCHEMA)
    ts = np.arange(1, 1001)
    buffer.insert(rows_at(ts, ts + 10))
    narrow = buffer.width
    assert buffer.describe() == f"calendar queue, {buffer.partitions} partitions of {narrow} ticks"
    for since in range(1000, 400_000, 1000):
        ts = np.arange(since + 1, since + 1001)
        buffer.expire(since)
        buffer.settle()
        buffer.insert(rows_at(ts, ts + 100_000))
    assert buffer.width * buffer.partitions >= 100_000
    assert 50_000 / ROWS_EACH <= buffer.partitions <= 8 * 100_000 / ROWS_EACH


def test_a_calendar_looks_in_vain_only_for_a_while() -> None:
    """Rows beyond the lap are looked at once per lap, until the partitions are chosen anew."""
    buffer = Calendar(SCHEMA)
    short = np.arange(1, 2001)
    buffer.insert(rows_at(short, short + 1))
    long = np.full(4000, 2000)
    buffer.insert(rows_at(long, long + 10_000_000 + np.arange(4000)))
    buffer.expire(2500)
    for upto in range(3000, 5_000_000, 1000):
        assert len(buffer.expire(upto)) == 0
    assert buffer.looked + buffer.passed < 200_000
    assert len(buffer.expire(10_006_000)) == 4000


def test_rows_without_a_known_end_cost_a_calendar_nothing() -> None:
    buffer = Adaptive(SCHEMA, 1)
    for upto in range(100):
        ts = np.full(100, upto)
        buffer.insert(rows_at(ts, np.full(100, NEVER)), keys(ts))
        assert len(buffer.expire(upto)) == 0
    assert (buffer.looked, buffer.passed, buffer.partitions) == (0, 0, 0)
    assert buffer.describe() == "hash of rows, ended by negative tuples"


def test_a_row_that_is_cut_needs_fewer_partitions() -> None:
    """15 of 16 rows are cut: the calendar is made for the rest."""
    made = {}
    for share in (0, 15):
        buffer = Adaptive(SCHEMA, 1)
        for since in range(0, 200_000, 1000):
            ts = np.arange(since + 1, since + 1001)
            rows = rows_at(ts, ts + 20_000)
            buffer.insert(rows, [ts.astype(np.int32)])
            early = rows.filter(ts % 16 < share)
            buffer.expire(since + 1000)
            buffer.settle()
            if len(early):
                cut = Rows(early.batch, np.full(len(early), since + 1001), early.exp)
                buffer.cut(cut, 0, early.ts.astype(np.int32))
                assert len(buffer.expire(since + 1001)) >= len(early)
                buffer.settle()
        made[share] = buffer.partitions
    assert buffer.premature > 0.9
    assert buffer.describe().startswith("hash of rows, 9")
    assert made[15] * 8 <= made[0]


@pytest.mark.parametrize("discipline", [Fifo, Calendar, Adaptive, Hashed, Listed])
def test_state_is_bounded_by_what_lives(discipline: type[Buffer]) -> None:
    buffer = discipline(SCHEMA, 1)
    ended = 0
    highest = 0
    for since in range(0, 1_000_000, 2000):
        ts = np.arange(since + 1, since + 2001)
        buffer.insert(rows_at(ts, ts + 10_000), keys(ts))
        ended += len(buffer.expire(since + 2000))
        buffer.settle()
        which, slots = buffer.probe(0, np.arange(100, dtype=np.int32), 1 << 20)
        assert len(which) == len(buffer) <= 10_000
        highest = max(highest, int(slots.max()))
    assert ended == 990_000
    assert highest <= 2 * (2 * 10_000 + SPARE)
    assert buffer.nbytes < 200 * highest


def test_many_equal_negative_tuples_walk_their_chain_once() -> None:
    """Every row is the same one: a walk per negative tuple would look at 10^10 slots, which no test survives."""
    buffer = Hashed(SCHEMA, 1)
    count = 100_000
    never = np.full(count, NEVER)
    for epoch in range(5):
        ts = np.full(count, epoch)
        codes = np.zeros(count, np.int32)
        buffer.insert(rows_at(ts, never), [codes])
        if epoch:
            buffer.cut(rows_at(ts, never), 0, codes)
            assert len(buffer.expire(epoch)) == count
        buffer.settle()
        assert len(buffer) == count


def test_a_probe_passes_each_dead_slot_once() -> None:
    """All but one row of a code are dead, and there are too few of them for a compaction."""
    buffer = Listed(SCHEMA, 1)
    live = 100_000
    ts = np.zeros(live, np.int64)
    buffer.insert(rows_at(ts, np.full(live, NEVER)), [np.arange(live, dtype=np.int32)])
    dead = np.zeros(90_000, np.int64)
    buffer.insert(rows_at(dead, dead + 1), [np.zeros(len(dead), np.int32)])
    buffer.expire(1)
    assert buffer.settle() is None
    which, _ = buffer.probe(0, np.zeros(1_000_000, np.int32), 1 << 20)  # 10^11 steps, if each walked over them
    assert len(which) == 1_000_000
