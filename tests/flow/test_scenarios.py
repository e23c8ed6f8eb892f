"""Random queries in random worlds: disorder, heartbeats, silence, relations that change, restarts, other queries."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import windrow
from tests.flow.random_flows import flows, limited, sliding_rows, windowed_output, with_relations
from tests.flow.scenarios import Scenario, World, scenarios

STRATEGIES = st.sampled_from(["upa", "nt", "direct"])


def run(text: str, scenario: Scenario, strategy: str, *, others: bool, optimizer: bool) -> None:
    """The answers are those of the reference; a query that is refused is refused at once."""
    world = World(scenario.lateness, text, strategy, others, optimizer)
    try:
        world.db.query(text, name="tried")
    except windrow.Error:
        assume(False)
        raise
    world.db.drop("tried")
    world.play(scenario)
    world.check(scenario)


@pytest.mark.parametrize("kind", [flows, with_relations, windowed_output, sliding_rows, limited])
@given(data=st.data(), scenario=scenarios(), strategy=STRATEGIES, others=st.booleans(), optimizer=st.booleans())
def test_answers_in_a_random_world(kind, data, scenario, strategy, others, optimizer) -> None:
    run(data.draw(kind(), label="query"), scenario, strategy, others=others, optimizer=optimizer)
