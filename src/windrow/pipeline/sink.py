"""What a sink is: the contract between a run, which has answers, and a place where other tools read them.

A spec is frozen and says what the user asked for; a sink is what runs. Each file `sink_*.py` has one kind of sink, and
`sinks.py` chooses among them.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windrow.errors import SinkError

ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or raise the limit"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make the place writable, or choose another"),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG), "choose another path"),
    errno.ENOENT: "bring the directory back",
}


@dataclass(frozen=True)
class SinkSpec:
    """Where and how a query's answers are written: `INTO format OPTIONS (…)`, or --output and --format."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def option(self, name: str) -> str | None:
        """The value of an option whatever the case of its name, as in Spark."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), None)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, for checkpoints and fingerprints."""
        return {"format": self.format, "options": dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SinkSpec:
        """The spec that to_json described."""
        return cls(data["format"], dict(data["options"]))


class Sink(ABC):
    """Takes the answers of one query, step by step; the same step twice is written once."""

    location: str
    """For people: a path, "console", "kafka topic x"."""
    independent: bool = False
    """Whether sinks of several queries may write at the same time, in threads."""
    exactly_once: bool
    """Whether a crash and a restart leave every answer there once; otherwise some may be there twice, none is lost."""

    @abstractmethod
    def write(self, step: int, table: pa.Table) -> None:
        """Write the answers since the last write, up to this step; they are durable when it returns."""

    def close(self) -> None:  # noqa: B027 - most sinks hold nothing
        """Let go of what the sink holds; a second call does nothing."""


class NoSink(Sink):
    """Answers are computed and dropped, like Spark's noop: for measuring."""

    location = "noop"
    exactly_once = True

    def write(self, step: int, table: pa.Table) -> None:
        """Nothing."""


class MemorySink(Sink):
    """Answers stay with the query handle (`q.answers()`), so there is nothing to write."""

    location = "memory"
    exactly_once = True

    def write(self, step: int, table: pa.Table) -> None:
        """Nothing: the query keeps its answers."""


@contextmanager
def opening(query: str, location: str) -> Iterator[None]:
    """Turn what goes wrong while a sink is opened into a SinkError."""
    try:
        yield
    except OSError as error:
        raise SinkError(f"query {query} cannot write to {location}: {reason(error)}; {advice(error)}") from error


@contextmanager
def writing(query: str, location: str) -> Iterator[None]:
    """Turn what goes wrong while answers are written into a SinkError; a restart writes them."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise failed_write(query, location, reason(error), advice(error)) from error


def failed_write(query: str, location: str, why: str, what_to_do: str) -> SinkError:
    """The error of a write that failed."""
    return SinkError(
        f"the answers of query {query} could not be written to {location}: {why}; {what_to_do}, and start again"
    )


def reason(error: Exception) -> str:
    """Why, in the words of the operating system when it has some."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def advice(error: Exception) -> str:
    """What to do about an error of the operating system."""
    return ADVICE.get(getattr(error, "errno", None) or 0, "remove the cause")
