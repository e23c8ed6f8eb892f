"""The random queries and worlds really have in them what the tests of answers are said to cover."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flow.random_flows import flows, limited, sliding_rows, windowed_output, with_relations
from tests.flow.scenarios import Scenario, scenarios

QUERIES = {
    "four inputs": r"x0.*x1.*x2.*x3",
    "outer join of three": r"JOIN.*JOIN",
    **{word: rf"\b{word}\b" for word in ("NOT EXISTS", "NOT IN", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION")},
    **{word: rf"\b{word}\b" for word in ("DISTINCT", "LEFT", "FULL", "HAVING", "INTERNAL", "LIMIT", "OFFSET", "NOW")},
    **{word: rf"\b{word}\(" for word in ("WSTREAM", "ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM_RESTORE")},
    "PARTITION BY": "PARTITION BY",
    "ROWS with SLIDE": r"ROWS \d+ SLIDE",
    "subquery as a window": r"\) \[",
    "relation": "names",
    "non-retroactive relation": "prices",
    "types that differ": r"x\d\.a = x\d\.b",
}


def features(scenario: Scenario) -> set[str]:
    """What happens in a world."""
    pushes = [event for event in scenario.events if event.kind == "push"]
    ticks = Counter((event.name, one[0]) for event in pushes for one in event.tuples)
    disordered = any(
        [one[0] for one in rows] != sorted(one[0] for one in rows)
        for name in "pqr"
        if (rows := [one for event in pushes if event.name == name for one in event.tuples])
    )
    found = {event.kind for event in scenario.events}
    found |= {"lateness"} if scenario.lateness else set()
    found |= {"disorder"} if disordered else set()
    found |= {"burst"} if max(ticks.values(), default=0) >= 4 else set()
    found |= {"tie cut apart"} if _tie_cut_apart(scenario) else set()
    found |= {"whole batches"} if any(len(event.tuples) > 3 for event in pushes) else set()
    found |= {"before zero"} if any(tick < 0 for _, tick in ticks) else set()
    found |= {"begins later"} if scenario.begins else set()
    return found | {"ends" if scenario.ended else "falls silent"}


def _tie_cut_apart(scenario: Scenario) -> bool:
    seen: set[tuple[str, int]] = set()
    for event in scenario.events:
        here = {(event.name, one[0]) for one in event.tuples} if event.kind == "push" else set()
        if here & seen:
            return True
        seen |= here
    return False


def test_random_queries_have_everything_in_them() -> None:
    texts: list[str] = []
    others = st.one_of(with_relations(), windowed_output(), sliding_rows(), limited())

    @settings(max_examples=300)
    @given(flows(), others)
    def collect(one: str, other: str) -> None:
        texts.extend((one, other))

    collect()
    assert [name for name, pattern in QUERIES.items() if not any(re.search(pattern, one) for one in texts)] == []


def test_random_worlds_have_everything_in_them() -> None:
    found: Counter[str] = Counter()

    @settings(max_examples=60)
    @given(scenarios())
    def collect(scenario: Scenario) -> None:
        found.update(features(scenario))

    collect()
    kinds = {"push", "advance", "update", "restart"}
    shapes = {"lateness", "disorder", "burst", "tie cut apart", "whole batches", "before zero", "begins later"}
    assert kinds | shapes | {"ends", "falls silent"} <= set(found)
