"""Numbers of a run as people and programs read them: watermarks as times, rates, records for JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from windrow.progress import Progress, StreamProgress

_EPOCH = datetime(1970, 1, 1)


def watermark_text(stream: StreamProgress) -> str | None:
    """A readable time for a TIMESTAMP (UTC), the number for BIGINT ticks, None before the first tuple.

    >>> watermark_text(StreamProgress("s", watermark=1_000_000))
    '1970-01-01 00:00:01'
    >>> watermark_text(StreamProgress("s", watermark=1_000_000, timestamps=False))
    '1,000,000'
    """
    if stream.watermark is None:
        return None
    if stream.timestamps:
        try:
            return str((_EPOCH + timedelta(microseconds=stream.watermark)).replace(microsecond=0))
        except OverflowError:
            pass  # ticks may lie beyond the year 9999
    return f"{stream.watermark:,}"


def lowest_watermark(progress: Progress) -> str | None:
    """The watermark of the stream that holds the others back."""
    known = [stream for stream in progress.streams if stream.watermark is not None]
    if not known or len(known) < len(progress.streams):
        return None
    return watermark_text(min(known, key=lambda stream: stream.watermark or 0))


class Pace:
    """Rows and answers per second of this process: what a checkpoint brought along is not counted."""

    def __init__(self) -> None:
        self._rows = 0
        self._answers = 0

    def see(self, progress: Progress) -> None:
        """Note a moment of the run."""
        if not progress.steps:
            self._rows, self._answers = progress.rows, progress.answers

    def rows(self, progress: Progress) -> float:
        """Rows per second since the first batch."""
        return _per_second(progress.rows - self._rows, progress.seconds)

    def answers(self, progress: Progress) -> float:
        """Answer rows per second since the first batch."""
        return _per_second(progress.answers - self._answers, progress.seconds)


def _per_second(count: int, seconds: float) -> float:
    return max(0, count) / seconds if seconds > 0 else 0.0


def counts(progress: Progress, pace: Pace) -> list[str]:
    """The figures of one moment, each with its unit."""
    parts = [f"{progress.rows:,} rows", f"{pace.rows(progress):,.0f} rows/s"]
    mark = lowest_watermark(progress)
    if mark is not None:
        parts.append(f"watermark {mark}")
    return [*parts, f"{progress.late:,} late", f"{progress.answers:,} answers"]


def progress_record(progress: Progress, pace: Pace) -> dict[str, Any]:
    """One moment of a run, for JSON."""
    return {
        "state": progress.state,
        "seconds": round(progress.seconds, 3),
        "fraction": progress.fraction,
        "rows": progress.rows,
        "rows_per_second": round(pace.rows(progress), 1),
        "late": progress.late,
        "answers": progress.answers,
        "answers_per_second": round(pace.answers(progress), 1),
        "streams": {stream.name: _stream_record(stream) for stream in progress.streams},
    }


def _stream_record(stream: StreamProgress) -> dict[str, Any]:
    return {
        "rows": stream.rows,
        "late": stream.late,
        "batches": stream.batches,
        "watermark": stream.watermark,
        "watermark_time": watermark_text(stream) if stream.timestamps else None,
        "fraction": stream.fraction,
    }
