"""The demo's queries: what a network engineer asks about packets, each over many windows, as a readable script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from itertools import count, islice
from textwrap import indent

from windrow.serving.packets import DECLARED


@dataclass(frozen=True)
class Question:
    """A query with holes for its window and the seconds in it, and what it is good for."""

    name: str
    purpose: str
    text: str


QUESTIONS = (
    Question(
        "top_talkers",
        "who sends the most bytes",
        """
        SELECT src, SUM(length) AS bytes, COUNT(*) AS packets
        FROM packets {window}
        GROUP BY src ORDER BY bytes DESC LIMIT 10
        """,
    ),
    Question(
        "top_receivers",
        "who receives the most bytes",
        """
        SELECT dst, SUM(length) AS bytes, COUNT(*) AS packets
        FROM packets {window}
        GROUP BY dst ORDER BY bytes DESC LIMIT 10
        """,
    ),
    Question(
        "traffic",
        "the load of the whole link",
        """
        SELECT COUNT(*) AS packets, SUM(length) AS bytes, AVG(length) AS mean_length
        FROM packets {window}
        """,
    ),
    Question(
        "protocols",
        "what the link carries",
        """
        SELECT proto, COUNT(*) AS packets, SUM(length) AS bytes
        FROM packets {window}
        GROUP BY proto
        """,
    ),
    Question(
        "protocol_lengths",
        "how packet lengths spread, per protocol",
        """
        SELECT proto, AVG(length) AS mean, STDDEV_POP(length) AS spread,
               MIN(length) AS least, MAX(length) AS most
        FROM packets {window}
        GROUP BY proto
        """,
    ),
    Question(
        "services",
        "the busiest services, by the port they listen on",
        """
        SELECT dport, COUNT(*) AS packets, SUM(length) AS bytes
        FROM packets {window}
        WHERE dport > 0 AND dport < 1024
        GROUP BY dport ORDER BY packets DESC LIMIT 5
        """,
    ),
    Question(
        "service_lengths",
        "the size of requests, per service",
        """
        SELECT dport, AVG(length) AS mean, MAX(length) AS most
        FROM packets {window}
        WHERE dport > 0 AND dport < 1024
        GROUP BY dport ORDER BY mean DESC LIMIT 5
        """,
    ),
    Question(
        "syn_floods",
        "hosts that open suspiciously many connections",
        """
        SELECT src, COUNT(*) AS attempts
        FROM packets {window}
        WHERE flags = 'S'
        GROUP BY src HAVING COUNT(*) >= 20 * {seconds} ORDER BY attempts DESC LIMIT 10
        """,
    ),
    Question(
        "flooded",
        "servers that are asked for suspiciously many connections",
        """
        SELECT dst, COUNT(*) AS attempts
        FROM packets {window}
        WHERE flags = 'S'
        GROUP BY dst HAVING COUNT(*) >= 20 * {seconds} ORDER BY attempts DESC LIMIT 10
        """,
    ),
    Question(
        "handshakes",
        "connections asked for, accepted and refused",
        """
        SELECT COUNT(*) FILTER (WHERE flags = 'S') AS asked,
               COUNT(*) FILTER (WHERE flags = 'SA') AS accepted,
               COUNT(*) FILTER (WHERE flags = 'R') AS refused
        FROM packets {window}
        """,
    ),
    Question(
        "dns",
        "name lookups, and how long the answers are",
        """
        SELECT COUNT(*) FILTER (WHERE dport = 53) AS questions,
               COUNT(*) FILTER (WHERE sport = 53) AS answers,
               AVG(length) FILTER (WHERE sport = 53) AS answer_length
        FROM packets {window}
        WHERE dport = 53 OR sport = 53
        """,
    ),
    Question(
        "dns_users",
        "who looks up the most names",
        """
        SELECT src, COUNT(*) AS questions
        FROM packets {window}
        WHERE proto = 'udp' AND dport = 53
        GROUP BY src ORDER BY questions DESC LIMIT 5
        """,
    ),
    Question(
        "networks",
        "bytes per /16 network of the sender",
        """
        SELECT split_part(src, '.', 1) || '.' || split_part(src, '.', 2) AS network, SUM(length) AS bytes
        FROM packets {window}
        GROUP BY network ORDER BY bytes DESC LIMIT 8
        """,
    ),
    Question(
        "bulk_receivers",
        "who downloads: many bytes in long packets",
        """
        SELECT dst, AVG(length) AS mean, MAX(length) AS most, SUM(length) AS bytes
        FROM packets {window}
        GROUP BY dst HAVING AVG(length) > 900 AND SUM(length) >= 20000 * {seconds} ORDER BY bytes DESC LIMIT 10
        """,
    ),
    Question(
        "tiny_packets",
        "senders whose packets hardly carry data",
        """
        SELECT src, COUNT(*) AS packets, AVG(length) AS mean
        FROM packets {window}
        GROUP BY src HAVING COUNT(*) >= 20 * {seconds} AND AVG(length) < 120 ORDER BY packets DESC LIMIT 10
        """,
    ),
    Question(
        "pings",
        "who pings",
        """
        SELECT src, COUNT(*) AS pings
        FROM packets {window}
        WHERE proto = 'icmp'
        GROUP BY src ORDER BY pings DESC LIMIT 3
        """,
    ),
)

WINDOWS = (
    (60, 10), (10, 1), (600, 60), (300, 10), (30, 5), (120, 5), (15, 5), (60, 1), (300, 60), (20, 2), (180, 30),
    (45, 15), (90, 30), (120, 20), (30, 10),
)  # fmt: skip
"""RANGE and SLIDE in seconds; the first of them are in every demo, however small."""
_SLIDES = (1, 2, 5, 10, 15, 30, 60)


@dataclass(frozen=True)
class DemoQuery:
    """A question over one window."""

    question: Question
    range: int
    slide: int

    @property
    def name(self) -> str:
        """`top_talkers_60s_10s`: the question, RANGE, SLIDE."""
        return f"{self.question.name}_{self.range}s_{self.slide}s"

    @property
    def text(self) -> str:
        """The query as a user writes it."""
        window = f"[RANGE {self.range} SECONDS SLIDE {self.slide} SECONDS]"
        return cleandoc(self.question.text).format(window=window, seconds=self.range)


def demo_queries(number: int) -> list[DemoQuery]:
    """All questions over the first window, then over the next, as many as asked for."""
    return list(islice((DemoQuery(one, *window) for window in _windows() for one in QUESTIONS), number))


def _windows() -> Iterator[tuple[int, int]]:
    yield from WINDOWS
    for step in count():
        window = (25 + 7 * step, _SLIDES[step % len(_SLIDES)])
        if window not in WINDOWS:
            yield window


def script(path: str | None, queries: list[DemoQuery], *, files_per_batch: int = 2) -> str:
    """The demo as a script that `windrow run` takes; without a path the stream takes pushed data only."""
    lines = [
        "-- Simulated IP packets, and what a network engineer asks about them.",
        f"-- {len(queries)} queries: {len({one.question for one in queries})} questions over different windows.",
        "-- Change what you like, then: windrow check, windrow explain, windrow run.",
        "",
        "CREATE STREAM packets",
        f"  ({DECLARED})",
        "  TIME ts LATENESS 2 SECONDS",
    ]
    if path is not None:
        quoted = path.replace("'", "''")
        lines.append(f"  USING parquet OPTIONS (path '{quoted}', maxFilesPerTrigger {files_per_batch})")
    lines[-1] += ";"
    for question in dict.fromkeys(one.question for one in queries):
        lines += ["", f"-- {question.name}: {question.purpose}"]
        for one in queries:
            if one.question is question:
                lines += [f"CREATE QUERY {one.name} AS", indent(one.text, "  ") + ";"]
    return "\n".join(lines) + "\n"
