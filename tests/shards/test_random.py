"""Random queries in random worlds: in any number of shards they answer as in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.flow.random_flows import flows, limited, sliding_rows, windowed_output, with_relations
from tests.flow.scenarios import Scenario, scenarios
from tests.shards.harness import play
from tests.shards.random_keyed import busy, keyed

STRATEGIES = st.sampled_from(["upa", "nt", "direct"])
SHARDS = st.sampled_from([1, 2, 3, 5])
CASES = [(flows, 0.15), (with_relations, 0.25), (windowed_output, 0.1), (keyed, 0.3)]
"""Random queries, and which share of them must have a key at least."""


@pytest.mark.parametrize(("kind", "share"), CASES, ids=lambda one: getattr(one, "__name__", ""))
def test_shards_answer_as_one_place(kind: Callable[[], st.SearchStrategy[str]], share: float) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=4 * settings().max_examples)  # those that are refused cost little
    @given(data=st.data(), scenario=st.one_of(busy(), busy(), scenarios()), strategy=STRATEGIES, shards=SHARDS)
    def run(data: st.DataObject, scenario: Scenario, strategy: str, shards: int) -> None:
        found = play(data.draw(kind(), label="query"), scenario, strategy, shards)
        event(found if isinstance(found, str) else "none" if found is None else "keyed")
        if found is not None:
            seen["queries"] += 1
            seen["keyed"] += not isinstance(found, str)
            seen["with answers"] += isinstance(found, int) and found > 0

    run()
    assert seen["keyed"] >= share * seen["queries"]
    assert seen["with answers"] >= seen["keyed"] / 3


@pytest.mark.parametrize("kind", [limited, sliding_rows])
@given(data=st.data(), scenario=scenarios())
def test_order_and_slides_by_rows_stay_in_one_place(
    kind: Callable[[], st.SearchStrategy[str]], data: st.DataObject, scenario: Scenario
) -> None:
    assert not isinstance(play(data.draw(kind(), label="query"), scenario, "upa", 2), int)
