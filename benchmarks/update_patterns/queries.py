"""Queries 1 to 4 of the thesis (3.6.1, Figures 3.5 and 3.7), with the ways in which each is maintained.

Rows have few columns, as a hash of whole rows (nt) would pay for more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.state.choice import Strategy

STRATEGIES: tuple[Strategy, ...] = ("upa", "nt", "direct")
Way = tuple[str, Strategy]
"""The text of a query, with {w} for the length of its windows, and a strategy."""


@dataclass(frozen=True)
class Question:
    """One figure: a query, and the ways to maintain its answer."""

    title: str
    figure: str
    ways: Mapping[str, Way]
    longer: Sequence[int] = ()
    """More lengths of windows, beyond those of the others: where a trend goes on."""


def _all(text: str) -> dict[str, Way]:
    return {strategy: (text, strategy) for strategy in STRATEGIES}


def _join(protocol: str) -> str:
    return (
        "SELECT link1.src AS src, link1.dst AS dst1, link1.bytes AS bytes1, link2.dst AS dst2, link2.bytes AS bytes2 "
        "FROM link1 [RANGE {w}], link2 [RANGE {w}] WHERE link1.src = link2.src "
        f"AND link1.protocol = '{protocol}' AND link2.protocol = '{protocol}'"
    )


NEGATION = (
    "SELECT src, dst, bytes FROM link1 [RANGE {w}] "
    "WHERE NOT EXISTS (SELECT src FROM link2 [RANGE {w}] WHERE link2.src = link1.src)"
)
JOIN_UP = (
    f"SELECT a.src, a.dst, a.bytes, c.dst AS dst3 FROM ({NEGATION}) AS a, "
    "link3 [RANGE {w}] AS c WHERE a.src = c.src AND c.protocol = 'gopher'"
)
"""Negation below the join: the join gets negative tuples (Figure 3.5, right)."""
NEGATION_UP = (
    "SELECT a.src, a.dst, a.bytes, c.dst AS dst3 FROM link1 [RANGE {w}] AS a, link3 [RANGE {w}] AS c "
    "WHERE a.src = c.src AND c.protocol = 'gopher' "
    "AND NOT EXISTS (SELECT src FROM link2 [RANGE {w}] WHERE link2.src = a.src)"
)
"""Negation above the join, which sees no negative tuples (Figure 3.5, left)."""

PAIRS = "SELECT DISTINCT src, dst FROM link1 [RANGE {w}]"

QUESTIONS: dict[str, Question] = {
    "query1_ftp": Question("Query 1: join of two links, protocol = ftp", "3.8", _all(_join("ftp"))),
    "query1_telnet": Question("Query 1: join of two links, protocol = telnet", "3.9", _all(_join("telnet"))),
    "query2_src": Question(
        "Query 2: distinct sources", "3.10 and 3.12", _all("SELECT DISTINCT src FROM link1 [RANGE {w}]"), (600_000,)
    ),
    "query2_pairs": Question("Query 2: distinct pairs of source and destination", "3.11 and 3.13", _all(PAIRS)),
    "query3": Question("Query 3: negation of two links", "3.14", _all(NEGATION)),
    "query4": Question(
        "Query 4: negation and join (⋈: join up, negation below it)",
        "3.15",
        {
            "upa": (NEGATION_UP, "upa"),
            "upa ⋈": (JOIN_UP, "upa"),
            "nt": (NEGATION_UP, "nt"),
            "nt ⋈": (JOIN_UP, "nt"),
            "direct": (NEGATION_UP, "direct"),
        },
    ),
}

ZEEK: dict[str, Question] = {
    "zeek_join": Question(
        "Zeek: DNS and TLS of the same source and destination",
        "3.8",
        _all(
            "SELECT link1.src AS src, link1.bytes AS bytes1, link2.bytes AS bytes2 FROM link1 [RANGE {w}], "
            "link2 [RANGE {w}] WHERE link1.src = link2.src AND link1.dst = link2.dst"
        ),
    ),
    "zeek_pairs": Question("Zeek: distinct pairs of DNS", "3.11", _all(PAIRS)),
    "zeek_negation": Question("Zeek: DNS of sources without TLS", "3.14", _all(NEGATION)),
}
