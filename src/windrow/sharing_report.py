"""Who shares what with whom, by which rule, and what that has saved: for EXPLAIN and SHOW SHARING.

The rules decide on descriptions of what runs (`sharing/rules`); the numbers are counted meanwhile (`sharing/saved`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import pyarrow as pa

from windrow.joined.described import shares_state, together
from windrow.joined.share import JoinShare
from windrow.plan.periodic import Aggregation, PeriodicAggregate
from windrow.plan.predicates import TRUE
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.covers import Combine
from windrow.sharing.derivation import Derivation
from windrow.sharing.member import Term
from windrow.sharing.rules.computation import CS1, CS2, CS3, CS5, CS8
from windrow.sharing.rules.described import Call, Described, Kept, Kind
from windrow.sharing.rules.registry import BY_NAME
from windrow.sharing.rules.state import SS1, SS2, SS3
from windrow.sharing.slice import Slice
from windrow.windows.grid import Grid

SCHEMA = pa.schema(
    [("stream", "string"), ("rule", "string"), ("queries", "string"), ("shared_with", "string"), ("what", "string"),
     ("saved", "int64"), ("unit", "string")]
)  # fmt: skip
MOST_NAMED = 8
_DONE = {Combine.ADD: "added", Combine.UNITE: "united", Combine.SUBTRACT: "subtracted"}
KINDS: dict[str, Kind] = {
    "running": "running", "interval": "interval", "basic_interval": "basic_interval", "landmark": "landmark"
}  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """One rule that applies: to which queries, with whose state, and what was saved."""

    rule: str
    queries: tuple[str, ...]
    with_: tuple[str, ...]
    what: str
    saved: int
    unit: str


def sharing_table(streams: Iterable[RunningStream], joins: Iterable[JoinShare] = ()) -> pa.Table:
    """SHOW SHARING: a row for each rule that applies somewhere."""
    found = [(running.stream.name, one) for running in streams for one in shared(running)]
    for share in joins:
        found += [(" ⋈ ".join(share.names), one) for one in shared_join(share)]
    rows = [
        {
            "stream": where,
            "rule": one.rule,
            "queries": listed(one.queries),
            "shared_with": listed(one.with_),
            "what": one.what,
            "saved": one.saved,
            "unit": one.unit,
        }
        for where, one in found
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def shared(running: RunningStream) -> Iterator[Shared]:
    """Everything that the queries of one stream share."""
    slices = list(running.slices.values())
    slices += [] if running.numbering is None else list(running.numbering.slices.values())
    for part in slices:
        queries = running.queries_of(part)
        names = tuple(query.name for query in queries)
        yield from _state(part, queries, names)
        if part.derivation is not None:
            yield _derived(running, part, names)
        yield from _computation(part, queries, names)
    for rules, probed in running.probed.items():
        asked = (f"{probed.questions:,} question{'s' * (probed.questions > 1)}",)
        owners, told = tuple(probed.owners), f"answered from {probed.lookups:,} windows of others"
        yield Shared(rules, asked, owners, f"{told}, without panes of their own", probed.panes, "panes")
        yield Shared(rules, asked, owners, f"{told}, without a look at tuples", probed.updates, "tuple updates")


def shared_join(share: JoinShare) -> Iterator[Shared]:
    """What queries over one join share: the join itself, its results, and the scans of them."""
    names = tuple(one.asker.name for one in share.members)
    if len(names) < 2:
        return
    saved = share.saved
    yield Shared(SS3.name, names, names, "the join is made once: its results", saved.results, "join results")
    for axis in share.axes:
        beside = tuple(asker.name for asker in axis.askers)
        if len(beside) > 1 and shares_state(axis):
            what = "every result updates the panes once"
            yield Shared(SS3.name, beside, beside, what, axis.saved.updates, "result updates")
        found = list(together(axis))
        if found:
            asked = tuple(asker.name for _, askers in found for asker in askers)
            rule = found[0][0]
            what = (
                "windows are answered in one scan" if isinstance(rule, CS5) else "the same windows are looked up once"
            )
            yield Shared(rule.name, asked, asked, what, axis.saved.lookups, "lookups")
    what = "the join is made once: its windows"
    yield Shared(SS3.name, names, names, what, saved.tuples, "tuple insertions")


def _state(part: Slice, queries: Sequence[RunningQuery], names: tuple[str, ...]) -> Iterator[Shared]:
    """SS1, and SS2 where an average takes the sums and counts of others."""
    if part.group is None or len(queries) < 2:
        return
    kept = described_slice(part, queries)
    alone = sum(_panes(Grid.of(query.member.progressions), query.reach) for query in queries)
    together = _panes(part.group.grid, max(query.reach for query in queries))
    if all(SS1().allows([kept], described(query)) for query in queries):
        what = f"{together:,} panes instead of {alone:,}"
        yield Shared(SS1.name, names, names, what, alone - together, "panes")
        saved = part.saved.shared_updates
        yield Shared(SS1.name, names, names, "every tuple updates the panes once", saved, "tuple updates")
    averages = _averages(queries)
    if averages:
        asked = sum(len(term.aggregate.components) for query in queries for term in query.member.terms)
        used = len({place for query in queries for places in query.member.positions for place in places})
        what = "AVG takes the sums and counts of the others"
        yield Shared(SS2.name, averages, names, what, asked - used, "components")


def _derived(running: RunningStream, part: Slice, names: tuple[str, ...]) -> Shared:
    assert part.derivation is not None
    rules = part.derivation.rules(part)
    saved = part.saved
    what = f"{saved.partials:,} partials came instead of {saved.derived_updates:,} tuples"
    with_ = owners_of(running, part.derivation.sources)
    return Shared("+".join(rules), names, with_, what, saved.derived_updates - saved.partials, "tuple updates")


def _computation(part: Slice, queries: Sequence[RunningQuery], names: tuple[str, ...]) -> Iterator[Shared]:
    """CS1 to CS3: who is looked up together; CS8: who takes the answers of whom."""
    together = sorted({rule for one, other in _neighbours(queries) for rule in rules_together(part, one, other)})
    if together:
        yield Shared(
            "+".join(together), names, names, "windows are looked up together", part.saved.lookups, "lookups"
        )  # fmt: skip
    alike: dict[object, list[RunningQuery]] = {}
    for query in queries:
        alike.setdefault(query.output, []).append(query)
    for seldom in queries:
        often = giver_of(seldom, alike[seldom.output])
        if often is not None:
            what = f"the answers of {often.name} are taken"
            yield Shared(CS8.name, (seldom.name,), (often.name,), what, seldom.taken, "lookups")


def _neighbours(queries: Sequence[RunningQuery]) -> Iterator[tuple[RunningQuery, RunningQuery]]:
    """Pairs that are enough to see whether queries with the same aggregates are looked up together."""
    last: dict[object, RunningQuery] = {}
    for query in queries:
        key = (query.member.positions, query.member.limited)
        if key in last:
            yield last[key], query
        last[key] = query


def rules_together(part: Slice, one: RunningQuery, other: RunningQuery) -> list[str]:
    """By which rules two queries of a slice are cheaper together when both are due."""
    kept = described_slice(part, [one, other])
    pair = [described(one), described(other)]
    return [rule.name for rule in (CS1(), CS2(), CS3()) if rule.allows([kept], pair)]


def giver_of(seldom: RunningQuery, queries: Sequence[RunningQuery]) -> RunningQuery | None:
    """The query with the shortest period whose answers another one takes."""
    same = [one for one in queries if one is not seldom and one.output == seldom.output]
    pair = [one for one in same if CS8().allows([], [described(one), described(seldom)])]
    return min(pair, key=lambda one: one.plan.slide, default=None)


# ---- EXPLAIN --------------------------------------------------------------------------------------------------------


def explained(running: RunningStream, part: Slice, plan: PeriodicAggregate) -> list[tuple[str, str]]:
    """The notes on a query that shares a slice: what it is derived from, what is derived from it, whose answers."""
    notes = []
    if part.derivation is not None:
        saved = part.saved
        notes.append(
            (
                "derived",
                f"{derivation_text(running, part, part.derivation)}; so far {saved.partials:,} partials came instead "
                f"of {saved.derived_updates:,} tuples",
            )
        )
    users = [one for one in running.slices.values() if one.derivation is not None and part in one.derivation.sources]
    if users:
        rules = sorted({rule for one in users if one.derivation is not None for rule in one.derivation.rules(one)})
        notes.append(("serves", f"partials from here go to {listed(owners_of(running, users))} ({rules_text(rules)})"))
    queries = running.queries_of(part)
    for query in queries:
        if query.plan is plan:
            often = giver_of(query, queries)
            if often is not None:
                told = f"where both are due, the answers of {often.name} are taken ({rules_text([CS8.name])})"
                notes.append(("output", f"{told}; so far {query.taken:,} windows were not looked up"))
    return notes


def derivation_text(running: RunningStream, part: Slice, derivation: Derivation) -> str:
    """How a slice is had from others."""
    told = combined_text(running, derivation, "the partials")
    return f"no tuple is looked at where that pays: {told} ({rules_text(derivation.rules(part))})"


def combined_text(running: RunningStream, derivation: Derivation, what: str) -> str:
    """What is done with the partials, or whatever else, of the sources."""
    owners = listed(owners_of(running, derivation.more))
    if derivation.how is Combine.SUBTRACT:
        return f"{what} of {listed(owners_of(running, derivation.less))} are subtracted from those of {owners}"
    return f"{what} of {owners} are {_DONE[derivation.how]}"


def rules_text(names: Sequence[str]) -> str:
    """Rules with their sections."""
    told = [f"{name}, thesis {BY_NAME[name].section}" for name in names]
    return f"rule{'s' if len(told) > 1 else ''} {' and '.join(told)}"


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def owners_of(running: RunningStream, parts: Sequence[Slice]) -> tuple[str, ...]:
    """The queries that share these slices."""
    return tuple(query.name for query in running.queries.values() if query.slice in parts)


# ---- descriptions ---------------------------------------------------------------------------------------------------


def described(query: RunningQuery) -> Described:
    """A running query, for the rules."""
    plan = query.plan
    assert plan.window.length is not None
    rest = (plan.window.offset, *query.output[2:])
    return Described(
        (plan.stream.name.lower(),),
        (plan.window.length,),
        plan.slide,
        tuple(described_call(one, query.member.terms) for one in plan.aggregations),
        query.slice.selected or TRUE,
        frozenset(plan.key_names),
        repr(rest),
    )


def described_call(one: Aggregation, terms: Sequence[Term]) -> Call:
    """An aggregate of a query with these terms."""
    values = [term.value for term in terms if term.aggregate.name == one.name]
    exact = all(value is None or not pa.types.is_floating(value.type) for value in values)
    return Call(one.name, one.value_text, exact)


def described_slice(part: Slice, queries: Sequence[RunningQuery]) -> Kept:
    """The panes of a slice as the synopsis that the rules speak of, long enough for the longest window."""
    assert part.group is not None
    steps = part.group.grid.progressions
    s = 0
    for step, phase in steps:
        s = gcd(s, step, phase - steps[0][1])
    shapes = [described(query) for query in queries]
    longest = max(shape.windows[0] for shape in shapes)
    places = [place for query in queries for term in query.member.positions for place in term]
    name = part.group.explain(places[0]).name if places else "running"
    return Kept(
        shapes[0].streams,
        KINDS.get(name, "interval"),
        s,
        longest // s,
        frozenset().union(*(shape.data for shape in shapes)),
        shapes[0].predicate,
        shapes[0].keys,
        steps[0][1],
    )


def _panes(grid: Grid, reach: int) -> int:
    """How many panes a window of this reach has."""
    return max(1, sum(reach // step for step, _ in grid.progressions))


def _averages(queries: Sequence[RunningQuery]) -> tuple[str, ...]:
    """The queries with an AVG whose sum or count another query asks for too."""
    averaged = {query.name: _values(query, ("AVG",)) for query in queries}
    if not any(averaged.values()):
        return ()
    asked = {query.name: _values(query, ("SUM", "COUNT")) for query in queries}
    askers = Counter(value for values in asked.values() for value in values)
    return tuple(name for name, values in averaged.items() if any(askers[one] > (one in asked[name]) for one in values))


def _values(query: RunningQuery, names: Sequence[str]) -> set[str]:
    """What a query asks these aggregates of."""
    return {one.value_text for one in query.plan.aggregations if one.name in names}
