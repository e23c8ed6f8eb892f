"""Who is ahead in event time waits, but never for one that has ended or that brings nothing."""

from __future__ import annotations

from threading import Event, Thread
from time import monotonic, sleep

from windrow.pipeline.pace import Pace

SOON = 10.0


def waiting(pace: Pace, stream: str) -> tuple[Thread, Event]:
    through = Event()

    def wait() -> None:
        pace.wait(stream)
        through.set()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    return thread, through


def test_a_replay_waits_until_the_other_has_come() -> None:
    marks: dict[str, int | None] = {"ahead": 10, "behind": None}
    pace = Pace({"ahead": True, "behind": True}, marks.__getitem__)
    pace.wait("behind")
    _, through = waiting(pace, "ahead")
    assert not through.wait(0.3)
    marks["behind"] = 9
    pace.moved("behind")
    assert not through.wait(0.3)
    marks["behind"] = 10
    pace.moved("behind")
    assert through.wait(SOON)


def test_nobody_waits_for_one_that_has_ended_or_has_another_clock() -> None:
    marks = {"ahead": 10, "ended": 1, "ticks": 1}
    pace = Pace({"ahead": True, "ended": True, "ticks": False}, marks.__getitem__)
    _, through = waiting(pace, "ahead")
    assert not through.wait(0.2)
    pace.end("ended")
    assert through.wait(SOON)


def test_a_stop_releases_those_who_wait() -> None:
    pace = Pace({"ahead": True, "behind": True}, {"ahead": 10, "behind": 1}.__getitem__)
    _, through = waiting(pace, "ahead")
    pace.release()
    assert through.wait(SOON)


def test_a_live_stream_waits_for_one_that_is_busy_and_not_for_an_idle_one() -> None:
    patience = 0.4
    pace = Pace({"ahead": True, "behind": True}, {"ahead": 10, "behind": 1}.__getitem__, patience)
    sleep(patience + 0.1)
    began = monotonic()
    for _ in range(20):
        pace.wait("ahead")
    assert monotonic() - began < patience, "an idle stream held another one back"
    pace.moved("behind")
    began = monotonic()
    pace.wait("ahead")
    assert monotonic() - began > patience / 2, "a stream that is behind and busy was not waited for"
