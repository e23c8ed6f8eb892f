"""Sets of values: every operation says of each value what logic says."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from windrow.plan.values import EVERYTHING, NOT_NULL, NOTHING, ONLY_NULL, ValueSet, compared

Parts: TypeAlias = "list[tuple[str, tuple[str, int]]]"
VALUES = range(-1, 7)
WHOLE = st.sampled_from([True, False])
ATOMS = st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(0, 5))


def built(parts: Parts, whole: bool) -> ValueSet:
    """Comparisons, united, cut or taken away one after the other."""
    found = NOTHING
    for how, (operator, value) in parts:
        one = compared(operator, value, whole=whole)
        found = found | one if how == "|" else found & one if how == "&" else found - one
    return found


PARTS = st.lists(st.tuples(st.sampled_from("|||&-"), ATOMS), max_size=6)


def members(values: ValueSet, whole: bool) -> set[float | None]:
    """Which of some values are in it; halves only where there may be some."""
    some = [float(one) for one in VALUES] + ([] if whole else [one + 0.5 for one in VALUES])
    found: set[float | None] = {
        one for one in some if compared("=", int(one) if whole else one, whole=whole).within(values)
    }
    return found | ({None} if ONLY_NULL.within(values) else set())


@given(PARTS, PARTS, WHOLE)
def test_operations(
    left: list[tuple[str, tuple[str, int]]], right: list[tuple[str, tuple[str, int]]], whole: bool
) -> None:
    one, other = built(left, whole), built(right, whole)
    mine, theirs = members(one, whole), members(other, whole)
    assert members(one & other, whole) == mine & theirs
    assert members(one | other, whole) == mine | theirs
    assert members(one - other, whole) == mine - theirs
    assert members(one.complement, whole) == members(EVERYTHING, whole) - mine
    assert one.within(other) == (one - other).empty == (mine <= theirs)
    assert one.overlaps(other) == (not (one & other).empty) == bool(mine & theirs)
    # Equal sets are equal objects, with the same text: queries find each other by it.
    assert (one == other) == (mine == theirs) == (str(one) == str(other))


def test_null_is_a_value_of_its_own() -> None:
    assert (NOT_NULL | ONLY_NULL) == EVERYTHING
    assert not NOT_NULL.overlaps(ONLY_NULL)
    assert compared("=", 1).complement.null
