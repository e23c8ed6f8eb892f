"""Every rule on descriptions: where it applies, and where it must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import parse_one

from windrow.language import types
from windrow.language.typing import infer
from windrow.plan.predicates import Predicate, predicate
from windrow.sharing.rules.described import Call, Described, Kept
from windrow.sharing.rules.registry import BY_NAME, RULES
from windrow.sharing.rules.rule import ComputationRule, StateRule


def where(text: str) -> Predicate:
    expression = parse_one(text)
    infer(expression, lambda column: types.TEXT)
    return predicate(expression)


def query(*names: str, window: int = 60, slide: int = 10, **more: Any) -> Described:
    return Described(("s",), (window,), slide, tuple(Call(name, "x") for name in names), **more)


def kept(*names: str, kind: Any = "running", b: int = 10, **more: Any) -> Kept:
    return Kept(("s",), kind, 10, b, query(*names).data, **more)


def join(*windows: int, name: str = "COUNT", slide: int = 10) -> Described:
    return Described(("s", "r"), windows, slide, (Call(name, "x"),))


def kept_join(kind: Any = "bij", g: int = 0) -> Kept:
    return Kept(("s", "r"), kind, 10, 8, join(10, 10).data, g=g)


TCP, UDP, BOTH, USER = where("p = 'tcp'"), where("p = 'udp'"), where("p IN ('tcp', 'udp')"), where("u = 'U'")
EITHER = where("p = 'tcp' OR u = 'U'")

STATE: list[tuple[str, bool, Sequence[Kept], Described]] = [
    ("SS1", True, [kept("SUM")], query("SUM", window=100)),
    ("SS1", True, [kept("SUM", "MAX")], query("AVG")),  # the same data per interval
    ("SS1", True, [kept("MEDIAN")], query("TOP_K", "COUNT_DISTINCT")),  # counters
    ("SS1", False, [kept("SUM")], query("SUM", window=110)),  # longer than b intervals
    ("SS1", False, [kept("SUM")], query("SUM", window=55)),  # no whole number of intervals
    ("SS1", False, [kept("SUM")], query("MAX")),
    ("SS1", False, [kept("SUM")], query("SUM", predicate=TCP)),
    ("SS1", False, [kept("SUM")], query("SUM", keys=frozenset({"k"}))),
    ("SS2", True, [Kept(("s",), "running", 10, 10, frozenset({("sum", "x")})), kept("COUNT")], query("AVG")),
    ("SS2", False, [Kept(("s",), "running", 10, 10, frozenset({("sum", "x")})), kept("COUNT", phase=3)], query("AVG")),
    ("SS2", False, [Kept(("s",), "running", 20, 10, frozenset({("sum", "x")})), kept("COUNT")], query("AVG")),
    ("SS2", False, [Kept(("s",), "running", 10, 5, frozenset({("sum", "x")})), kept("COUNT")], query("AVG")),
    ("SS3", True, [kept_join()], join(70, 70)),
    ("SS3", True, [kept_join(g=2)], join(60, 80)),
    ("SS3", False, [kept_join()], join(70, 80)),  # not generalized
    ("SS3", False, [kept_join(g=2)], join(50, 80)),  # flagged results reach back two intervals only
    ("SS3", False, [kept_join(g=7)], join(90, 90)),
    ("SS3", False, [kept("COUNT")], join(70, 70)),
    ("SS4", True, [kept("SUM", predicate=TCP), kept("SUM", predicate=UDP)], query("SUM", predicate=BOTH)),
    ("SS4", True, [kept("MAX", predicate=TCP), kept("MAX", predicate=USER)], query("MAX", predicate=EITHER)),
    ("SS4", True, [kept("SUM", predicate=BOTH), kept("SUM", predicate=UDP)], query("SUM", predicate=TCP)),
    ("SS4", False, [kept("SUM", predicate=TCP), kept("SUM", predicate=USER)], query("SUM", predicate=EITHER)),
    ("SS4", False, [kept("MAX", predicate=BOTH), kept("MAX", predicate=UDP)], query("MAX", predicate=TCP)),
    ("SS4", False, [kept("SUM", predicate=TCP)], query("SUM", predicate=BOTH)),  # a subcover
    ("SS4", False, [kept("SUM", predicate=TCP, b=5), kept("SUM", predicate=UDP)], query("SUM", predicate=BOTH)),
    ("SS4", False, [kept("SUM", predicate=TCP, phase=1), kept("SUM", predicate=UDP)], query("SUM", predicate=BOTH)),
    ("GB", True, [kept("SUM", keys=frozenset("ab"))], query("AVG", keys=frozenset("a"))),
    ("GB", False, [kept("SUM", keys=frozenset("ab"))], query("AVG", keys=frozenset("c"))),
    ("GB", False, [kept("SUM", keys=frozenset("ab"))], query("AVG", keys=frozenset("a"), predicate=TCP)),
    ("GB", False, [kept("MAX", keys=frozenset("ab"))], query("AVG", keys=frozenset("a"))),
]
SUMS = Kept(("s",), "running", 10, 10, frozenset({("sum", "x")}))
TOGETHER: list[tuple[str, bool, Sequence[Kept], Sequence[Described]]] = [
    ("CS1", True, [kept("MEDIAN", kind="interval")], [query("TOP_K"), query("COUNT_DISTINCT", slide=20)]),
    ("CS1", False, [kept("MEDIAN", kind="interval")], [query("TOP_K"), query("COUNT_DISTINCT", window=50)]),
    ("CS1", False, [kept("MAX", kind="basic_interval")], [query("MAX"), query("MAX")]),
    ("CS2", True, [kept("MAX", kind="basic_interval")], [query("MAX"), query("MAX", window=100)]),
    ("CS2", False, [kept("MAX", kind="interval")], [query("MAX"), query("MAX", window=100)]),
    ("CS2", False, [kept("MAX", kind="basic_interval")], [query("MAX"), query("MAX", window=110)]),
    ("CS3", True, [SUMS, kept("COUNT")], [query("SUM"), query("COUNT"), query("AVG")]),
    ("CS3", True, [kept("SUM")], [query("SUM"), query("COUNT"), query("AVG")]),
    ("CS3", False, [SUMS, kept("COUNT")], [query("SUM"), query("COUNT"), query("AVG", window=50)]),
    ("CS3", False, [SUMS, kept("COUNT", phase=1)], [query("SUM"), query("COUNT"), query("AVG")]),
    ("CS3", False, [SUMS, kept("COUNT")], [query("SUM"), query("AVG")]),
    ("CS4", True, [kept_join("rj")], [join(70, 70), join(70, 70, slide=20)]),
    ("CS4", False, [kept_join("rj")], [join(70, 70), join(60, 60)]),
    ("CS4", False, [kept_join("bij")], [join(70, 70), join(70, 70)]),
    ("CS5", True, [kept_join("bij", g=2)], [join(20, 20), join(60, 80), join(80, 80)]),
    ("CS5", False, [kept_join("bij", g=2)], [join(20, 20), join(50, 80)]),
    ("CS5", False, [kept_join("ij")], [join(20, 20), join(80, 80)]),
    (
        "CS6",
        True,
        [kept("SUM", predicate=TCP), kept("SUM", predicate=UDP)],
        [query("SUM", predicate=TCP), query("SUM", predicate=UDP), query("SUM", predicate=BOTH)],
    ),
    (
        "CS6",
        False,
        [kept("SUM", predicate=TCP), kept("SUM", predicate=UDP)],
        [query("SUM", predicate=TCP), query("SUM", predicate=UDP), query("SUM", predicate=BOTH, window=50)],
    ),
    (
        "CS6",
        False,
        [kept("SUM", predicate=TCP), kept("SUM", predicate=UDP)],
        [query("SUM", predicate=TCP), query("SUM", predicate=BOTH)],  # the query on UDP is not executed
    ),
    (
        "CS7",
        True,
        [kept("MAX", kind="basic_interval", predicate=TCP), kept("MAX", kind="basic_interval", predicate=USER)],
        [query("MAX", predicate=TCP), query("MAX", predicate=USER), query("MAX", predicate=EITHER, window=80)],
    ),
    (
        "CS7",
        False,
        [kept("MAX", kind="interval", predicate=TCP), kept("MAX", kind="interval", predicate=USER)],
        [query("MAX", predicate=TCP), query("MAX", predicate=USER), query("MAX", predicate=EITHER, window=80)],
    ),
    ("CS8", True, [kept("MAX")], [query("MAX", slide=10), query("MAX", slide=30)]),
    ("CS8", False, [kept("MAX")], [query("MAX", slide=20), query("MAX", slide=30)]),  # never at 30
    ("CS8", False, [kept("MAX")], [query("MAX", slide=30), query("MAX", slide=10)]),
    ("CS8", False, [kept("MAX")], [query("MAX", slide=10), query("MAX", slide=30, window=50)]),
    ("CS8", False, [kept("MAX")], [query("MAX", slide=10), query("MAX", slide=30, rest="LIMIT 3")]),
]


@pytest.mark.parametrize(("name", "allowed", "synopses", "one"), STATE)
def test_state(name: str, allowed: bool, synopses: Sequence[Kept], one: Described) -> None:
    rule = BY_NAME[name]
    assert isinstance(rule, StateRule)
    assert rule.allows(synopses, one) is allowed


@pytest.mark.parametrize(("name", "allowed", "synopses", "queries"), TOGETHER)
def test_computation(name: str, allowed: bool, synopses: Sequence[Kept], queries: Sequence[Described]) -> None:
    rule = BY_NAME[name]
    assert isinstance(rule, ComputationRule)
    assert rule.allows(synopses, queries) is allowed


def test_every_rule_is_tried_both_ways_and_documented() -> None:
    tried = {(name, allowed) for name, allowed, *_ in [*STATE, *TOGETHER]}
    assert tried == {(rule.name, allowed) for rule in RULES for allowed in (True, False)}
    for rule in RULES:
        assert rule.section.startswith("8.") and rule.effect and rule.saves and type(rule).__doc__


def test_floating_sums_are_not_subtracted() -> None:
    synopses = [kept("SUM", predicate=BOTH), kept("SUM", predicate=UDP)]
    exact = query("SUM", predicate=TCP)
    floating = replace(exact, calls=(Call("SUM", "x", exact=False),))
    assert BY_NAME["SS4"].allows(synopses, exact)  # type: ignore[attr-defined]
    assert not BY_NAME["SS4"].allows(synopses, floating)  # type: ignore[attr-defined]
