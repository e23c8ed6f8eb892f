"""What a run reports while it goes on: plain numbers, for a terminal, a log or a test to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class StreamProgress:
    """How far one stream has come."""

    name: str
    rows: int = 0
    late: int = 0
    batches: int = 0
    watermark: int | None = None
    """In ticks: microseconds since 1970 (UTC) when `timestamps`, else the stream's own BIGINT ticks."""
    timestamps: bool = True
    fraction: float | None = None
    """How much of a bounded source is read, 0 to 1; None when its length is not known."""


@dataclass(frozen=True)
class Progress:
    """A moment of a run. `state` is a short phrase for people: starting Spark, recovering, reading, ending, done."""

    state: str
    seconds: float = 0.0
    """Since the first batch began."""
    streams: tuple[StreamProgress, ...] = ()
    answers: int = 0
    """Rows of answers so far, of all queries."""
    steps: int = 0
    """Micro-batches taken in by this process."""

    @property
    def rows(self) -> int:
        """Rows read, of all streams."""
        return sum(stream.rows for stream in self.streams)

    @property
    def late(self) -> int:
        """Late rows, of all streams."""
        return sum(stream.late for stream in self.streams)

    @property
    def fraction(self) -> float | None:
        """How much of all bounded sources is read; None when that is not known."""
        known = [stream.fraction for stream in self.streams if stream.fraction is not None]
        return sum(known) / len(known) if known and len(known) == len(self.streams) else None


@dataclass(frozen=True)
class Summary:
    """What a run did, once it is over."""

    progress: Progress
    ended: bool = True
    """False when the input may go on: the run was stopped, or its windows were left open."""
    resumed: tuple[str, ...] = ()
    """Queries that went on where the checkpoint had them."""
    afresh: tuple[str, ...] = ()
    """Why something did not: one sentence each, for people."""
    stopped: dict[str, str] = field(default_factory=dict)
    """Queries that an error stopped, and the error."""
    outputs: dict[str, str] = field(default_factory=dict)
    """Where each query's answers are."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds per phase of the micro-batches: pass, transfer, journal, absorb, answers, sinks, snapshot."""


OnProgress: TypeAlias = Callable[[Progress], None]
