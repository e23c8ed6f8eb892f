"""Which synopsis serves a component best: a small cost model, in combines of one row of groups per pane.

    running          1      + 2 per lookup                        only what subtracts; then nothing is better
    basic_interval   1      + b per instant                       one scan answers all windows that end together
    interval         2      + log2 W per lookup
    landmark         1 + 2γ + 3 per lookup

b is the longest window, W a window, both in panes; γ the number of landmark partitions. From this follows the rule of
thumb of thesis 8.3.1: basic interval when at least b / log b queries run together. A synopsis that needs more memory
must save a quarter, and its extra rows must not need more than EXTRA_BYTES.

Before data flow the registered windows decide. Later it is what their lookups have cost and would have cost elsewhere
(`Seen`), for example because a replay answers many instants at once, or because most panes are missing. The change is
made when what was wasted since the last one would have paid for it, so a bad choice costs at most twice the best and
the choice does not swing to and fro (002, section 8, asks for such a change while queries run).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2

from windrow.aggregates import Component, Subtractable
from windrow.synopses.workload import Expected, Seen, landmark_steps

EXTRA_BYTES = 1 << 28
SAVING = 0.75
FEWEST = 64
"""No change before at least so many combines were wasted."""

RUNNING, BASIC_INTERVAL, INTERVAL, LANDMARK = "running", "basic_interval", "interval", "landmark"
COMBINING = (BASIC_INTERVAL, INTERVAL, LANDMARK)
"""For any component, by the memory that they need."""


@dataclass(frozen=True)
class Choice:
    """The name of a synopsis, and why."""

    name: str
    reason: str


def rows_per_pane(expected: Expected) -> dict[str, int]:
    """How many rows of groups each synopsis keeps, and combines, per pane."""
    return {BASIC_INTERVAL: 1, INTERVAL: 2, LANDMARK: 1 + 2 * len(landmark_steps(expected.lengths))}


def expected_costs(expected: Expected) -> dict[str, float]:
    """Combines per pane, before anything was measured."""
    rows = rows_per_pane(expected)
    # An unbounded window grows for ever: what counts is that the others do not scan it.
    longest = min(expected.longest, 1e9)
    logs = sum(rate * log2(1 + min(length, 1e9)) for length, rate in expected.windows)
    fits = all(length < inf for length, _ in expected.windows)
    return {
        BASIC_INTERVAL: rows[BASIC_INTERVAL] + expected.instants * longest,
        INTERVAL: rows[INTERVAL] + logs,
        LANDMARK: rows[LANDMARK] + (3 * expected.lookups if fits else inf),
    }


def seen_costs(expected: Expected, seen: Seen) -> dict[str, float]:
    """Combines that each synopsis would have needed, of all that was seen."""
    rows = rows_per_pane(expected)
    return {name: rows[name] * seen.panes + getattr(seen, name) for name in COMBINING}


def best(costs: dict[str, float], expected: Expected, row_bytes: int, panes: int) -> str:
    """The cheapest; what needs more memory must save a quarter."""
    rows = rows_per_pane(expected)
    name = COMBINING[0]
    for other in COMBINING[1:]:
        extra = (rows[other] - 1) * row_bytes * panes
        if costs[other] < SAVING * costs[name] and extra <= EXTRA_BYTES:
            name = other
    return name


def choose(component: Component, expected: Expected, row_bytes: int = 8) -> Choice:
    """For a component of which nothing is kept yet; a row of groups has so many bytes."""
    if isinstance(component, Subtractable):
        return Choice(RUNNING, f"{component.name} subtracts: two reads answer a window of any length")
    costs = expected_costs(expected)
    # How far an unbounded window will grow nobody knows; `better` will see.
    name = best(costs, expected, row_bytes, max(expected.lengths, default=0))
    if not expected.windows:
        return Choice(name, f"{component.name} does not subtract: the panes of a window are combined")
    windows = f"{len(expected.windows)} windows of up to" if len(expected.windows) > 1 else "a window of"
    length = "all" if expected.longest == inf else f"{expected.longest:,.0f}"
    asked = f"{windows} {length} panes, {expected.lookups:,.3g} lookups per pane"
    return Choice(name, f"{component.name} does not subtract; {asked}, estimated {_told(costs)} combines per pane")


def better(current: str, expected: Expected, seen: Seen, row_bytes: int, panes: int) -> str:
    """A better synopsis than the current one if the change has paid for itself already, else the current one."""
    costs = seen_costs(expected, seen)
    name = best(costs, expected, row_bytes, panes)
    wasted = costs[current] - costs[name]
    building = panes * rows_per_pane(expected)[name]
    if name == current or costs[name] > SAVING * costs[current] or wasted < building + FEWEST:
        return current
    return name


def measured(component: Component, expected: Expected, seen: Seen) -> str:
    """What was seen, in words."""
    panes = max(1, seen.panes)
    costs = {name: cost / panes for name, cost in seen_costs(expected, seen).items()}
    ratio = seen.windows / panes
    return (
        f"{component.name} does not subtract; over {seen.panes:,} panes with {ratio:,.3g} lookups per pane, "
        f"measured {_told(costs)} combines per pane"
    )


def forced(name: str, by: str | None = None) -> Choice:
    """The one that was asked for: for the whole connection, or by the hint of a query."""
    return Choice(name, f"asked for with {by or f'synopsis={name!r}'}")


def _told(costs: dict[str, float]) -> str:
    shown = {name: cost for name, cost in costs.items() if cost < inf}
    return ", ".join(f"{name} {cost:,.3g}" if cost < 1000 else f"{name} {cost:,.0f}" for name, cost in shown.items())
