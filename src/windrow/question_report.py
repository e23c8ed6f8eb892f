"""Questions that are answered from the slices of others: by which rules, counted for SHOW SHARING, told by EXPLAIN."""

from __future__ import annotations

from dataclasses import replace

from windrow.plan.periodic import PeriodicAggregate
from windrow.plan.predicates import TRUE
from windrow.running import RunningStream
from windrow.sharing.derivation import terms_of
from windrow.sharing.probing import Probe
from windrow.sharing.rules.computation import CS6, CS7
from windrow.sharing.rules.described import Described
from windrow.sharing.rules.state import SS1, SS4
from windrow.sharing.saved import Probed
from windrow.sharing_report import (
    KINDS,
    combined_text,
    described,
    described_call,
    described_slice,
    owners_of,
    rules_text,
)


def note_probe(running: RunningStream, plan: PeriodicAggregate, probe: Probe, saved: Probed) -> None:
    """Count a question that was answered from the slices of others."""
    rules = "+".join(probe_rules(running, plan, probe))
    probed = running.probed.setdefault(rules, Probed())
    probed.add(saved)
    known = dict.fromkeys(name for name in probed.owners if name in running.queries)
    probed.owners = known | dict.fromkeys(owners_of(running, probe.derivation.sources))


def probe_text(running: RunningStream, plan: PeriodicAggregate, probe: Probe) -> str:
    """How a question is answered from the slices of others."""
    told = combined_text(running, probe.derivation, "the answers for its window")
    return f"db.ask needs no panes of its own: {told} ({rules_text(probe_rules(running, plan, probe))})"


def probe_rules(running: RunningStream, plan: PeriodicAggregate, probe: Probe) -> tuple[str, ...]:
    """By which rules: those for the state, and whether the window is looked up as candidates do that anyway.

    A source is described by what was found in it: the aggregates of the question, and its window as a single interval,
    for it is a union of whole panes. Finer groups are put together first (GB): then it has the keys of the question.
    """
    rules = probe.derivation.rules(probe.part)
    if SS4.name not in rules:
        return rules or (SS1.name,)
    terms, length = terms_of(probe.part), plan.window.length
    assert length is not None
    keys = frozenset(plan.key_names)
    calls = tuple(described_call(one, terms) for one in plan.aggregations)
    asked = Described(
        (plan.stream.name.lower(),), (length,), plan.slide, calls, probe.part.selected or TRUE, keys
    )  # fmt: skip
    synopses, candidates = [], []
    for source in probe.derivation.sources:
        queries = running.queries_of(source)
        alike = next((one for one in queries if _lengths(one.plan) == _lengths(plan)), None)
        candidate = alike or queries[0]
        kept = described_slice(source, [candidate])
        choice = source.explain(terms[0]) if terms else None
        synopses.append(
            replace(
                kept,
                kind=kept.kind if choice is None else KINDS.get(choice.name, "interval"),
                s=length,
                b=1,
                phase=probe.end,
                data=asked.data,
                keys=keys,
            )
        )
        # One of another window is told apart also if that is as long.
        windows = (length,) if alike else _lengths(candidate.plan)
        candidates.append(replace(described(candidate), keys=keys, windows=windows))
    found = [rule.name for rule in (CS6(), CS7()) if rule.allows(synopses, [*candidates, asked])]
    return (*rules, *found)


def _lengths(plan: PeriodicAggregate) -> tuple[int, int]:
    assert plan.window.length is not None
    return plan.window.length, plan.window.offset
