"""Covers of predicates: the queries Q1 to Q6 of thesis 8.3.3, and what a cover must never be."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from windrow.language import types
from windrow.language.typing import infer
from windrow.plan.predicates import TRUE, Predicate, predicate
from windrow.sharing.covers import (
    Combine,
    Cover,
    find_cover,
    is_cover,
    is_disjoint,
    is_subcover,
    is_supercover,
)


def where(text: str) -> Predicate:
    expression = parse_one(text)
    infer(expression, lambda column: types.INTEGER if column.name in ("a", "b") else types.TEXT)
    return predicate(expression)


Q1 = where("protocol = 'TCP'")
Q2 = where("protocol = 'UDP'")
Q3 = where("protocol = 'TCP' OR protocol = 'UDP'")
Q4 = Q1
Q5 = where("user = 'U'")
Q6 = where("protocol = 'TCP' OR user = 'U'")


def test_sums_of_two_protocols() -> None:
    assert is_cover(Q3, [Q1, Q2]) and is_disjoint([Q1, Q2])
    assert find_cover(Q3, [Q1, Q2]) == Cover(Combine.ADD, (0, 1))


def test_one_of_them_is_a_subcover() -> None:
    assert is_subcover(Q3, [Q1]) and not is_cover(Q3, [Q1])
    assert find_cover(Q3, [Q1], insensitive=True, subtractable=True) is None


def test_maxima_need_no_disjoint_cover() -> None:
    assert is_cover(Q6, [Q4, Q5]) and not is_disjoint([Q4, Q5])
    assert find_cover(Q6, [Q4, Q5], insensitive=True) == Cover(Combine.UNITE, (0, 1))
    assert find_cover(Q6, [Q4, Q5], subtractable=True) is None  # sums would count some packets twice


def test_the_first_is_what_the_third_has_more_than_the_second() -> None:
    assert is_supercover(Q1, [Q3]) and is_supercover(Q2, [Q3])
    assert find_cover(Q1, [Q3, Q2], subtractable=True) == Cover(Combine.SUBTRACT, (0,), (1,))
    assert find_cover(Q1, [Q3, Q2]) is None  # a maximum cannot be taken away
    assert find_cover(Q1, [Q3], subtractable=True) is None


@pytest.mark.parametrize(
    ("wanted", "given_", "found"),
    [
        ("a < 10", ["a < 5", "a BETWEEN 5 AND 9"], Cover(Combine.ADD, (0, 1))),
        ("a < 10", ["a < 5", "a >= 5"], None),  # the second has too many rows
        ("a < 10 OR a IS NULL", ["a < 10", "a IS NULL"], Cover(Combine.ADD, (0, 1))),
        ("a IN (1, 2)", ["b = 1", "a = 2 OR a = 1"], Cover(Combine.ADD, (1,))),
        ("a < 10", ["a < 7", "a BETWEEN 5 AND 9", "a BETWEEN 7 AND 9"], Cover(Combine.ADD, (0, 2))),
        ("TRUE", ["a = 1", "a <> 1"], None),  # NULL is in neither
        ("TRUE", ["a = 1", "a <> 1", "a IS NULL"], Cover(Combine.ADD, (0, 1, 2))),
        ("a <> 1", ["TRUE", "a = 1 OR a IS NULL"], Cover(Combine.SUBTRACT, (0,), (1,))),
        ("a <> 1", ["TRUE", "a = 1"], None),
    ],
)
def test_which_cover(wanted: str, given_: list[str], found: Cover | None) -> None:
    assert find_cover(where(wanted), [where(one) for one in given_], subtractable=True) == found


_ATOMS = st.sampled_from(["a = 0", "a = 1", "a = 2", "a < 1", "a >= 1", "a <> 1", "b = 0", "b = 1", "a IS NULL"])
_TEXTS = st.lists(_ATOMS, min_size=1, max_size=3).map(" OR ".join) | st.just("TRUE")


@given(_TEXTS, st.lists(_TEXTS, max_size=5), st.booleans(), st.booleans())
def test_every_cover_has_every_row_once(wanted: str, texts: list[str], insensitive: bool, subtractable: bool) -> None:
    """Counted on all pairs of a few values, NULL among them."""
    found = find_cover(where(wanted), [where(one) for one in texts], insensitive=insensitive, subtractable=subtractable)
    if found is None:
        return

    def holds(text: str, a: int | None, b: int | None) -> bool:
        def one(atom: str) -> bool:
            if atom == "TRUE":
                return True
            name, operator, value = atom.split(" ", 2)
            mine = a if name == "a" else b
            if operator == "IS":
                return mine is None
            tests = {"=": int.__eq__, "<": int.__lt__, ">=": int.__ge__, "<>": int.__ne__}
            return mine is not None and tests[operator](mine, int(value))

        return any(one(atom) for atom in text.split(" OR "))

    for a, b in product([None, -1, 0, 1, 2, 3], [None, 0, 1, 2]):
        times = sum(holds(texts[n], a, b) for n in found.more) - sum(holds(texts[n], a, b) for n in found.less)
        if found.how is Combine.UNITE:
            times = min(times, 1)
        assert times == holds(wanted, a, b)


def test_nothing_is_taken_away_from_itself() -> None:
    """What no row satisfies is disjoint from all, also from the one that has too many rows."""
    never = where("a < 1 AND a > 2")
    assert find_cover(never, [Q1, TRUE], subtractable=True) is None
    assert find_cover(never, [Q1, TRUE, Q1], subtractable=True) is None


def test_a_query_without_where_is_covered_by_its_parts_only() -> None:
    assert find_cover(TRUE, [Q1, Q2], insensitive=True, subtractable=True) is None


@pytest.mark.parametrize("more", [0, 5, 15, 60])
def test_many_other_queries_do_not_hide_a_cover(more: int) -> None:
    given_ = [*(f"a = {number % 17}" for number in range(more)), "a < 17", "a = 49"]
    found = find_cover(where("a < 17 OR a = 49"), [where(text) for text in given_])
    assert found == Cover(Combine.ADD, (more, more + 1))


def test_covers_of_many_parts() -> None:
    parts = [where(f"a = {number}") for number in range(20)]
    wanted = where("a BETWEEN 0 AND 19")
    assert find_cover(wanted, parts) == Cover(Combine.ADD, tuple(range(20)))
    overlapping = [where(f"a IN ({number}, {number + 1})") for number in range(18)]
    odd = where("a BETWEEN 0 AND 18")
    united = find_cover(odd, overlapping, insensitive=True)
    assert united is not None and united.how is Combine.UNITE
    assert find_cover(odd, overlapping) is None and find_cover(odd, overlapping[:9], insensitive=True) is None
    others = where("a IS NOT NULL AND a NOT IN (3, 4, 5, 6, 7)")
    found = find_cover(others, [where("a IS NOT NULL"), *parts], subtractable=True)
    assert found == Cover(Combine.SUBTRACT, (0,), (4, 5, 6, 7, 8))
