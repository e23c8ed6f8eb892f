"""What a run says when it is over: figures, late rows, what was resumed or stopped, where the answers are."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from windrow.figures import Pace, progress_record
from windrow.progress import StreamProgress, Summary

LATE = "late rows of "
"""Begins the name under which a run's outputs have the late rows of a stream."""
MANY = 8
"""Longer lists are cut."""


def summary_lines(summary: Summary, pace: Pace, queries: int) -> list[str]:
    """The summary for people; each line begins with its topic."""
    progress = summary.progress
    lines = [
        f"rows: {progress.rows:,} {_time(summary)} ({pace.rows(progress):,.0f} rows/s)",
        f"answers: {progress.answers:,} rows of {_count(queries, 'query', 'queries')} "
        f"({pace.answers(progress):,.0f} answers/s)",
    ]
    lines += [_late_line(stream, summary) for stream in progress.streams if stream.late]
    if not progress.late:
        lines.append("late: no rows")
    if summary.resumed:
        count = _count(len(summary.resumed), "query", "queries")
        lines.append(f"resumed: {count} went on where the checkpoint had them: {_listed(summary.resumed)}")
    lines += [f"afresh: {reason}" for reason in summary.afresh]
    lines += [f"stopped: {name}: {error}" for name, error in summary.stopped.items()]
    lines += _output_lines({name: place for name, place in summary.outputs.items() if not name.startswith(LATE)})
    if not summary.ended:
        lines.append("open: the input was not taken as ended, so windows that are not complete have no answer yet")
    return lines


def _time(summary: Summary) -> str:
    """A resumed run counts all rows of its checkpoint, but only its own time."""
    seconds = f"{summary.progress.seconds:,.1f} s"
    return f"in all; this process took {seconds}" if summary.resumed else f"in {seconds}"


def _late_line(stream: StreamProgress, summary: Summary) -> str:
    place = summary.outputs.get(LATE + stream.name)
    where = f"db.late('{stream.name}') in the library gives the rows" if place is None else f"the rows are in {place}"
    return (
        f"late: {stream.late:,} rows of {stream.name} came at or below its watermark and are in no answer; if such "
        f"delays are normal, raise LATENESS in CREATE STREAM {stream.name}; {where}"
    )


def _output_lines(outputs: dict[str, str]) -> list[str]:
    if not outputs:
        return ["output: none; give --output DIR, or INTO … in CREATE QUERY"]
    parents = {os.path.dirname(place.rstrip("/")) for place in outputs.values()}
    inside = all(PurePath(place).name == name for name, place in outputs.items())
    if len(parents) == 1 and inside and len(outputs) > 1:
        return [f"output: {parents.pop() or '.'}/<query>, of {len(outputs)} queries"]
    shown = [f"output: {name}: {place}" for name, place in list(outputs.items())[:MANY]]
    return shown + ([f"output: and {len(outputs) - MANY} more"] if len(outputs) > MANY else [])


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def summary_record(summary: Summary, pace: Pace, queries: int, *, interrupted: bool) -> dict[str, Any]:
    """The summary for JSON."""
    figures = progress_record(summary.progress, pace)
    for key in ("state", "fraction"):
        del figures[key]
    return {
        **figures,
        "late": {stream.name: stream.late for stream in summary.progress.streams},
        "queries": queries,
        "ended": summary.ended,
        "interrupted": interrupted,
        "resumed": list(summary.resumed),
        "afresh": list(summary.afresh),
        "stopped": dict(summary.stopped),
        "outputs": dict(summary.outputs),
        "phases": dict(summary.phases),
    }
