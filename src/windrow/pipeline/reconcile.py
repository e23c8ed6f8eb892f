"""A script that was changed between two runs: what did not change goes on, the rest starts afresh, and that is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.errors import StateError
from windrow.flowing import FlowQuery
from windrow.language.catalog import Relation, Stream
from windrow.language.records import relation_to_json
from windrow.pipeline.definitions import QueryDefinition
from windrow.pipeline.host import Host
from windrow.pipeline.host_record import Intake
from windrow.pipeline.sinks import set_aside
from windrow.relations import every_relation
from windrow.running import Registered


@dataclass
class Resumption:
    """Which queries went on, and a sentence for each thing that did not."""

    resumed: list[str] = field(default_factory=list)
    afresh: list[str] = field(default_factory=list)


def _no_rows(relation: Relation) -> pa.Table:
    return relation.schema.empty_table()


def reconcile(
    host: Host,
    streams: Sequence[tuple[Stream, str]],
    queries: Sequence[QueryDefinition],
    relations: Mapping[str, Relation] | None = None,
    rows: Callable[[Relation], pa.Table] = _no_rows,
) -> Resumption:
    """Make a recovered host run these streams (with their fingerprints), relations (by name) and queries.

    A relation goes on with the rows that it had; one that is new here starts with `rows`.
    """
    relations = relations or {}
    if host.finished:
        _require_unchanged(host, streams, queries)
    if host.outlet.waiting:
        host.flush()
    found = Resumption()
    wanted = {definition.name.lower(): definition for definition in queries}
    lost = _forget_relations(host, relations, found)
    lost |= _reconcile_streams(host, streams, found)
    for name, relation in relations.items():
        if host.catalog.get(name) is None:
            host.catalog.add(relation)
    for name, hosted in list(host.queries.items()):
        old, new = hosted.definition, wanted.get(name)
        if new is not None and name not in lost and new.meaning == old.meaning:
            found.resumed.append(new.name)
            if not new.writes_like(old):
                hosted.redirect(new)
                found.afresh.append(f"query {new.name} writes to another place from now on")
            continue
        host.forget(name)
        if new is None and name not in lost:
            found.afresh.append(
                f"query {old.name} is not in the script any more; its answers so far stay where they are"
            )
    for name, definition in wanted.items():
        if name in host.queries:
            continue
        moved = None if definition.sink is None else set_aside(definition.sink, definition.name, f"step-{host.step}")
        host.register(definition)
        reason = lost.get(name) or f"is new or has changed: it starts with {_first_of(host.queries[name].running)}"
        kept = f"; its earlier answers were moved to {moved}" if moved is not None else ""
        found.afresh.append(f"query {definition.name} {reason}{kept}")
    load_relations(host, rows)
    host.open_sinks()
    host.compact()
    return found


def _first_of(query: Registered) -> str:
    return "the tuples that come now" if isinstance(query, FlowQuery) else "what its stream's panes hold now"


def load_relations(host: Host, rows: Callable[[Relation], pa.Table]) -> None:
    """Fill the relations that queries read and nobody has filled."""
    for query in list(host.engine.flows.queries.values()):
        for source in every_relation(query.flow.query):
            assert source.relation is not None
            if not host.engine.flows.relations.known(source.relation):
                host.engine.flows.load_relation(source.relation, rows(source.relation))


def _forget_relations(host: Host, wanted: Mapping[str, Relation], found: Resumption) -> dict[str, str]:
    """Take out relations that are declared otherwise now; gives the queries that read them, and why they start anew."""
    lost: dict[str, str] = {}
    for old in [one for one in host.catalog if isinstance(one, Relation)]:
        new = wanted.get(old.name.lower())
        if new is not None and relation_to_json(new) == relation_to_json(old):
            continue
        for query in host.engine.flows.readers(old):
            lost[query.name.lower()] = f"starts afresh with its relation {old.name}"
            host.engine.drop_query(query)
        host.engine.flows.relations.forget(old)
        host.catalog.remove(old.name)
        what = "is declared otherwise now and is read anew" if new is not None else "is not in the script any more"
        found.afresh.append(f"relation {old.name} {what}")
    return lost


def _require_unchanged(host: Host, streams: Sequence[tuple[Stream, str]], queries: Sequence[QueryDefinition]) -> None:
    """A run that has ended gives no more answers, so nothing may start afresh in it."""
    old = {name: hosted.definition.meaning for name, hosted in host.queries.items()}
    new = {definition.name.lower(): definition.meaning for definition in queries}
    marks = {name: intake.fingerprint for name, intake in host.intakes.items()}
    now = {stream.name.lower(): mark for stream, mark in streams if mark}
    changed = [f"query {name}" for name in {**old, **new} if old.get(name) != new.get(name)]
    changed += [f"stream {name}" for name in {**marks, **now} if marks.get(name) != now.get(name)]
    if changed:
        raise StateError(
            f"the run of this checkpoint has ended, and the script has changed since: {', '.join(changed)}. Choose "
            "another checkpoint directory to run the changed script"
        )


def _reconcile_streams(host: Host, streams: Sequence[tuple[Stream, str]], found: Resumption) -> Mapping[str, str]:
    """Replace streams that are another source now; gives the queries that lost theirs, and why they start afresh."""
    wanted = {stream.name.lower(): (stream, fingerprint) for stream, fingerprint in streams}
    lost: dict[str, str] = {}
    for name, running in list(host.engine.streams.items()):
        stream, fingerprint = wanted.get(name, (None, ""))
        known = host.intakes.get(name)
        if stream is not None and (fingerprint == "" if known is None else known.fingerprint == fingerprint):
            running.stream = stream  # its options may have changed, and a checkpoint has none
            continue
        for hosted in list(host.queries.values()):
            if name in hosted.running.streams:
                lost[hosted.definition.name.lower()] = f"starts afresh with its stream {running.stream.name}"
        for query in host.engine.queries_on(name):
            host.engine.drop_query(query)
        host.engine.remove_stream(name)
        host.catalog.remove(name)
        host.done.pop(name, None)
        host.files.pop(name, None)
        host.intakes.pop(name, None)
        what = (
            "is another one now and is read from its start" if stream is not None else "is not in the script any more"
        )
        found.afresh.append(f"stream {running.stream.name} {what}")
    for name, (stream, fingerprint) in wanted.items():
        if name not in host.engine.streams:
            host.catalog.add(stream)
            host.engine.add_stream(stream)
            add_intake(host, stream, fingerprint)
    return lost


def add_intake(host: Host, stream: Stream, fingerprint: str) -> None:
    """Note where a stream comes from; a stream without a source has no fingerprint."""
    if fingerprint:
        name = stream.name.lower()
        # The step makes the folder a new one when a stream changes and changes back.
        folder = "".join(letter if letter.isalnum() else "_" for letter in name)
        host.intakes[name] = Intake(fingerprint, f"spark/{folder}-{fingerprint}-{host.step}")
