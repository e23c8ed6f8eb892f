"""What a run shows while it goes on and when it is over, from the numbers that it reports."""

from __future__ import annotations

import io
import json

from rich.console import Console

from windrow.display import JsonLines, LiveDisplay, PlainLines, plain_line
from windrow.figures import Pace, lowest_watermark, watermark_text
from windrow.progress import Progress, StreamProgress, Summary
from windrow.serving.summary import summary_lines, summary_record

MARK = 1_769_860_805_123_456
"""2026-01-31 12:00:05.123456."""


def moment(rows: int = 1_200_000, *, late: int = 0, steps: int = 3, state: str = "reading") -> Progress:
    stream = StreamProgress("packets", rows, late, steps, MARK, True, 0.4)
    return Progress(state, 4.0, (stream,), 50_000, steps)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_watermark_is_a_readable_time() -> None:
    assert watermark_text(StreamProgress("s", watermark=MARK)) == "2026-01-31 12:00:05"
    assert watermark_text(StreamProgress("s", watermark=-1)) == "1969-12-31 23:59:59"
    assert watermark_text(StreamProgress("s", watermark=1 << 60)) == f"{1 << 60:,}"
    assert watermark_text(StreamProgress("s")) is None


def test_the_slowest_stream_has_the_watermark() -> None:
    streams = (StreamProgress("a", watermark=MARK), StreamProgress("b", watermark=MARK - 5_000_000))
    assert lowest_watermark(Progress("reading", streams=streams)) == "2026-01-31 12:00:00"
    assert lowest_watermark(Progress("reading", streams=(*streams, StreamProgress("c")))) is None


def test_rows_of_an_earlier_process_do_not_count_for_the_rate() -> None:
    pace = Pace()
    pace.see(moment(1_000_000, steps=0))
    assert pace.rows(moment(1_200_000)) == 50_000


def test_plain_lines_come_ever_more_rarely() -> None:
    file, clock = io.StringIO(), Clock()
    show = PlainLines(file, clock)
    for now in (100.0, 104.9, 105.0, 107.0, 112.4, 112.6, 120.0, 124.0):
        clock.now = now
        show(moment())
    assert (
        file.getvalue().splitlines()
        == ["reading 40%: 1,200,000 rows, 300,000 rows/s, watermark 2026-01-31 12:00:05, 0 late, 50,000 answers"] * 3
    )


def test_a_line_before_the_first_row_is_the_state() -> None:
    assert plain_line(Progress("starting Spark"), Pace()) == "starting Spark"


def test_json_lines_tell_each_new_state_and_then_one_per_second() -> None:
    file, clock = io.StringIO(), Clock()
    show = JsonLines(file, clock)
    for now, state in ((100.0, "starting Spark"), (100.1, "reading"), (100.5, "reading"), (101.2, "reading")):
        clock.now = now
        show(moment(state=state, late=3))
    lines = [json.loads(line)["progress"] for line in file.getvalue().splitlines()]
    assert [line["state"] for line in lines] == ["starting Spark", "reading", "reading"]
    assert lines[-1] == {
        "state": "reading", "seconds": 4.0, "fraction": 0.4, "rows": 1_200_000, "rows_per_second": 300_000.0,
        "late": 3, "answers": 50_000, "answers_per_second": 12_500.0,
        "streams": {
            "packets": {
                "rows": 1_200_000, "late": 3, "batches": 3, "watermark": MARK,
                "watermark_time": "2026-01-31 12:00:05", "fraction": 0.4,
            }
        },
    }  # fmt: skip


def test_the_live_display_shows_a_bar_and_leaves_nothing_behind() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, color_system=None)
    with LiveDisplay(console) as show:
        show(Progress("starting Spark"))
        show(moment(late=7))
        show._live.refresh()
    text = file.getvalue()
    assert "━━━" in text and " 40%" in text
    assert "1,200,000 rows · 300,000 rows/s · watermark 2026-01-31 12:00:05 · 7 late · 50,000 answers" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back
    assert text.endswith("\x1b[2K")  # and the lines are erased


def test_a_summary_says_everything_that_a_user_needs() -> None:
    summary = Summary(
        moment(late=12, state="done"),
        resumed=tuple(f"q{i}" for i in range(10)),
        afresh=("query busy starts afresh: its text changed",),
        stopped={"deep": "query deep was stopped: integer overflow"},
        outputs={"q0": "out/q0", "q1": "out/q1"},
    )
    assert summary_lines(summary, Pace(), 11) == [
        "rows: 1,200,000 in all; this process took 4.0 s (300,000 rows/s)",
        "answers: 50,000 rows of 11 queries (12,500 answers/s)",
        "late: 12 rows of packets came at or below its watermark and are in no answer; if such delays are normal, "
        "raise LATENESS in CREATE STREAM packets; db.late('packets') in the library gives the rows",
        "resumed: 10 queries went on where the checkpoint had them: q0, q1, q2, q3, q4, q5, q6, q7 and 2 more",
        "afresh: query busy starts afresh: its text changed",
        "stopped: deep: query deep was stopped: integer overflow",
        "output: out/<query>, of 2 queries",
    ]


def test_late_rows_that_were_written_are_pointed_at() -> None:
    outputs = {"q": "out/q", "late rows of packets": "out/_late/packets"}
    lines = summary_lines(Summary(moment(late=12), outputs=outputs), Pace(), 1)
    assert lines[2].endswith("raise LATENESS in CREATE STREAM packets; the rows are in out/_late/packets")
    assert lines[3:] == ["output: q: out/q"]


def test_a_short_summary() -> None:
    lines = summary_lines(Summary(Progress("done"), ended=False), Pace(), 1)
    assert lines == [
        "rows: 0 in 0.0 s (0 rows/s)",
        "answers: 0 rows of 1 query (0 answers/s)",
        "late: no rows",
        "output: none; give --output DIR, or INTO … in CREATE QUERY",
        "open: the input was not taken as ended, so windows that are not complete have no answer yet",
    ]


def test_outputs_in_different_places_are_listed() -> None:
    lines = summary_lines(Summary(moment(), outputs={"a": "x/a", "b": "kafka topic t"}), Pace(), 2)
    assert lines[-2:] == ["output: a: x/a", "output: b: kafka topic t"]


def test_a_summary_for_machines_is_json() -> None:
    record = summary_record(Summary(moment(late=2), outputs={"a": "x/a"}), Pace(), 5, interrupted=False)
    assert json.loads(json.dumps(record)) == record
    assert (record["rows"], record["late"], record["queries"], record["outputs"]) == (
        1_200_000, {"packets": 2}, 5, {"a": "x/a"}
    )  # fmt: skip
