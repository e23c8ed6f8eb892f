"""Live: whatever the policy, queries are answered at all their due times if the load allows it, and exactly always."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from time import sleep

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.live import LiveSchedule
from windrow.scheduling.policy import POLICIES
from windrow.slicer import slicer
from windrow.testing import assert_same

TEXTS = [
    "SELECT MAX(b) AS v FROM s [RANGE 10 SLIDE 2]",
    "SELECT MAX(b) AS v FROM s [RANGE 5 SLIDE 2]",
    "SELECT MAX(b) AS v FROM s [RANGE 15 SLIDE 3]",
    "SELECT MAX(b) AS v FROM s [RANGE 20 SLIDE 5]",
    "SELECT a, COUNT(*) AS n, SUM(b) AS v FROM s [RANGE 8 SLIDE 4] GROUP BY a",
    "SELECT a, COUNT(*) AS n, SUM(b) AS v FROM s [RANGE 12 SLIDE 3] GROUP BY a",
    "SELECT MEDIAN(b) AS m FROM s [RANGE 9 SLIDE 3 OFFSET 1] WHERE a > 1",
]


def database(texts: list[str] = TEXTS) -> windrow.Database:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t")
    for number, text in enumerate(texts):
        db.query(text, name=f"q{number}")
    return db


def rows(first: int, last: int) -> pa.Table:
    ticks = range(first, last)
    return pa.table(
        {"t": list(ticks), "a": pa.array([i % 4 for i in ticks], pa.int32()), "b": [i * 37 % 101 for i in ticks]}
    )


class Live:
    """A database whose batches are taken in and answered apart, as a live run does it."""

    def __init__(self, policy: str, texts: list[str] = TEXTS) -> None:
        self.db = database(texts)
        self.schedule = LiveSchedule(policy)

    def take(self, table: pa.Table) -> None:
        engine = self.db._engine
        job = engine.job("s")
        worker = slicer(job.text)
        worker.begin(engine.streams["s"].watermark.value)
        worker.take(table.select(list(job.columns)))
        engine.absorb("s", job, worker.result(), answer=False)
        self.schedule.arrived(engine.streams["s"])

    def work(self, most: int | None = None) -> None:
        engine = self.db._engine
        for number, (one, work, execution) in enumerate(self.schedule.work(), 1):
            engine.execute(work.stream, work.now, work.queries)
            one.done(execution, 0.001)
            if number == most:
                return
        engine.forget("s")


def slide_of(text: str) -> int:
    return int(re.findall(r"SLIDE (\d+)", text)[0])


def exact(text: str, table: pa.Table, slide: int) -> pa.Table:
    """The answers at all multiples of a slide."""
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a INT, b BIGINT) TIME t")
    query = db.query(re.sub(r"SLIDE \d+", f"SLIDE {slide}", text))
    db.push("s", table)
    return query.answers()


def at(table: pa.Table, times: set[int]) -> pa.Table:
    return table.filter(pa.array([time in times for time in table["_time"].to_pylist()]))


@given(cuts=st.lists(st.integers(1, 119), max_size=8))
@pytest.mark.parametrize("policy", POLICIES)
def test_all_due_times_are_answered_when_the_load_allows_it(policy: str, cuts: list[int]) -> None:
    live = Live(policy)
    ends = [0, *sorted(set(cuts)), 120]
    for first, last in pairwise(ends):
        live.take(rows(first, last))
        live.work()
    for query, text in zip(live.db.queries(), TEXTS, strict=True):
        wanted, found = exact(text, rows(0, 120), slide_of(text)), query.answers()
        own = set(wanted["_time"].to_pylist())
        assert_same(at(found, own), wanted)
        early = {time for time in found["_time"].to_pylist() if time % slide_of(text)}
        assert_same(at(found, early), at(exact(text, rows(0, 120), 1), early))
        assert query.running.skipped == 0
    if policy in ("edf", "conservative"):
        assert all(not time % slide_of(text) for q, text in zip(live.db.queries(), TEXTS, strict=True)
                   for time in q.answers()["_time"].to_pylist())  # fmt: skip


@pytest.mark.parametrize("by_hint", [True, False])
def test_the_higher_priority_goes_first_at_equal_deadlines(by_hint: bool) -> None:
    live = Live("edf")
    for number, priority in enumerate((0, 3, -2)):
        hint = f"/*+ PRIORITY({priority}) */ " if by_hint else ""
        text = f"SELECT {hint}MIN(b) AS low FROM s [RANGE {20 + number} SLIDE 7]"
        live.db.query(text, name=f"p{priority}", priority=None if by_hint else priority)
    live.take(rows(0, 10))
    order = []
    for one, work, execution in live.schedule.work():
        order += [name for name in work.queries if name.startswith("p")]
        live.db._engine.execute(work.stream, work.now, work.queries)
        one.done(execution, 0.001)
    assert order == ["p3", "p0", "p-2"] * 2  # due at 0 and at 7
    assert "\npriority: 3: " in next(query for query in live.db.queries() if query.name == "p3").explain()


@pytest.mark.parametrize("policy", POLICIES)
def test_under_overload_periods_get_longer_and_answers_stay_exact(policy: str) -> None:
    live = Live(policy)
    for first in range(0, 400, 4):
        live.take(rows(first, first + 4))
        live.work(most=1)  # one execution per batch is all that there is time for
    live.work()
    queries = live.db.queries()
    assert sum(query.running.skipped for query in queries) > 0
    for query, text in zip(queries, TEXTS, strict=True):
        found = query.answers()
        times = set(found["_time"].to_pylist())
        assert len(times) > 5  # nobody starves
        assert_same(found, at(exact(text, rows(0, 400), 1), times))
        figures = live.schedule.query("s", query.name)
        assert figures["requested_period"] == slide_of(text) and figures["achieved_period"] > 0
    system = live.schedule.figures()["s"]
    assert system["skipped_updates"] > 0 and system["executions"] >= 100


def test_queries_come_and_go() -> None:
    live = Live("hybrid-late-pending")
    live.take(rows(0, 20))
    live.work()
    live.db.drop("q0")
    live.db.query("SELECT MAX(b) AS v FROM s [RANGE 6 SLIDE 6]", name="late")
    live.schedule.set_policy("conservative")
    live.take(rows(20, 60))
    live.work()
    late = live.db.queries()[-1]
    assert late.answers()["_time"].to_pylist()[-1] == 54
    assert live.schedule.query("s", "q0") == {}
    assert live.schedule.figures()["s"]["policy"] == "conservative"
    live.db.query("SELECT COUNT(*) AS n FROM s [RANGE 1 SLIDE 1]", name="finer")
    live.take(rows(60, 70))
    live.work()
    assert live.db.queries()[-1].answers()["_time"].to_pylist()[-1] == 68


def test_the_end_answers_what_is_left() -> None:
    live = Live("aggressive")
    live.take(rows(0, 50))
    live.take(rows(50, 100))
    live.work(most=1)
    live.db.finish()
    for query, text in zip(live.db.queries(), TEXTS, strict=True):
        assert query.answers()["_time"].to_pylist()[-1] >= 99, text


def test_an_unknown_policy() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        LiveSchedule("fastest")


def test_what_waits_is_not_lost_when_updates_are_counted_otherwise() -> None:
    live = Live("conservative")
    live.take(rows(0, 50))
    live.db.query("SELECT COUNT(*) AS n FROM s [RANGE 7 SLIDE 7]", name="guest")
    live.work()
    live.take(rows(50, 100))
    live.db.drop("guest")
    live.work()
    for query, text in zip(live.db.queries(), TEXTS, strict=True):
        wanted = exact(text, rows(0, 100), slide_of(text))
        assert_same(at(query.answers(), set(wanted["_time"].to_pylist())), wanted)


def test_a_new_schedule_begins_where_the_last_one_was() -> None:
    live = Live("hybrid")
    live.take(rows(0, 3000))
    live.work()
    live.schedule = LiveSchedule("hybrid")
    live.take(rows(3000, 3010))
    live.work()
    assert live.schedule.figures()["s"]["executions"] < 100  # not three thousand updates again
    wanted = exact(TEXTS[0], rows(0, 3010), 2)
    assert_same(at(live.db.queries()[0].answers(), set(wanted["_time"].to_pylist())), wanted)


def beside_an_odd_query(live: Live, batches: range, every: int) -> Iterator[int]:
    """The beginnings of batches, before which now and then a query comes or goes that makes an update another."""
    for number, first in enumerate(batches):
        if number % every == 1:
            live.db.query("SELECT a, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5] GROUP BY a", name="odd")
        if number % every == every // 2 + 1:
            live.db.drop("odd")
        yield first


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_achieved_stays_when_an_update_becomes_another(policy: str) -> None:
    """A query with an odd SLIDE changes the greatest common divisor of all, when it comes and when it goes."""
    texts = ["SELECT MAX(b) AS v FROM s [RANGE 12 SLIDE 6]", "SELECT MAX(b) AS v FROM s [RANGE 18 SLIDE 12]"]
    live = Live(policy, texts)
    runs = 0
    for first in beside_an_odd_query(live, range(0, 240, 8), every=4):
        live.take(rows(first, first + 8))
        live.work()
        before, runs = runs, live.schedule.figures()["s"]["runs"]
        assert runs >= before
    assert runs > 60
    for query, text in zip(live.db.queries(), texts, strict=False):  # and the odd one
        wanted = exact(text, rows(0, 240), slide_of(text))
        assert_same(at(query.answers(), set(wanted["_time"].to_pylist())), wanted)
        figures = live.schedule.query("s", query.name)
        assert figures["achieved_period"] <= figures["requested_period"] and figures["latency_updates"] == 0
        times = query.answers()["_time"].to_pylist()
        assert figures["achieved_period"] == pytest.approx(times[-1] / (len(times) - (times[0] == 0)), rel=0.2)


def test_overload_while_an_update_becomes_another_starves_nobody() -> None:
    texts = [re.sub(r"SLIDE \d+", f"SLIDE {6 * (1 + number % 3)}", text) for number, text in enumerate(TEXTS)]
    live = Live("hybrid-late-pending", texts)
    for first in beside_an_odd_query(live, range(0, 800, 4), every=6):
        live.take(rows(first, first + 4))
        live.work(most=1)
    for query, text in zip(live.db.queries(), texts, strict=False):  # and the odd one
        times = sorted(set(query.answers()["_time"].to_pylist()))
        assert max(later - sooner for sooner, later in pairwise([0, *times, 800])) < 100, (text, times)
        assert_same(query.answers(), at(exact(text, rows(0, 800), 1), set(times)))


@pytest.mark.parametrize("policy", ["hybrid", "hybrid-late-pending"])
def test_choices_that_are_made_beside_the_run(policy: str) -> None:
    live = Live(policy)
    live.schedule = LiveSchedule(policy, beside=True)
    for first in range(0, 600, 10):
        live.take(rows(first, first + 10))
        live.work()
        sleep(0.005)
    for query, text in zip(live.db.queries(), TEXTS, strict=True):
        found = query.answers()
        times = sorted(set(found["_time"].to_pylist()))
        assert_same(found, at(exact(text, rows(0, 600), 1), set(times)))
        assert max(later - sooner for sooner, later in pairwise([*times, 599])) <= slide_of(text)
    merged = live.schedule.query("s", "q2")
    assert merged["achieved_period"] < 0.9 * merged["requested_period"]  # a choice has come
    live.schedule.close()
    assert live.schedule.figures()["s"]["runs"] > 0
