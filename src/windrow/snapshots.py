"""Snapshots of a running engine: all that future answers depend on, as JSON and Arrow IPC; never pickle.

A snapshot has no plans and no programs. The streams and queries are registered again, in a fresh engine, and get their
state back here; first everything is checked and built, then it is put in place, so that a refusal changes nothing.

    {"version", "synopsis", "streams": [{"name", "watermark", …,
        "slices": [{"predicate", "keys", "panes": name of the blob, …}],
        "numbering": None, or of ROWS windows {"slices", "log": names of blobs, …},
        "queries": [{"name", "axis": which slices, "slice": index, "window", …, "next_due"}]}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.errors import CheckpointError
from windrow.language.catalog import Stream
from windrow.numbering.numbering import Numbering
from windrow.plan.periodic import PeriodicAggregate
from windrow.running import RunningQuery, RunningStream
from windrow.sharing.covers import Combine
from windrow.sharing.derivation import Derivation
from windrow.sharing.member import Member
from windrow.sharing.slice import Slice

VERSION = 5

_WATERMARK = ("value", "oldest", "newest")
_STREAM = ("rows", "late_rows", "batches", "finished")
_QUERY = ("started", "due", "answered", "seconds", "rows_since", "newest_time", "skipped", "answered_at")
_MEMBER = ("since", "next_due", "origin")
_TIME, _ROWS, _CONTENTS = "time", "rows", "contents"
"""What a query looks at: panes of time, panes of rows, or the last rows of each key, which have no slice."""


def snapshot_streams(
    streams: Mapping[str, RunningStream], synopsis: str | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The state of these streams and their queries: a JSON-able dict, and the panes of each slice as a blob."""
    blobs: dict[str, bytes] = {}
    records = [_stream_record(running, blobs) for running in streams.values()]
    return {"version": VERSION, "synopsis": synopsis, "streams": records}, blobs


def restore_streams(
    streams: Mapping[str, RunningStream], synopsis: str | None, meta: Mapping[str, Any], blobs: Mapping[str, bytes]
) -> None:
    """Give registered streams and queries the state of a snapshot, or raise CheckpointError and change nothing."""
    try:
        check_kind(meta, synopsis)
        _check_names("streams", streams, [record["name"].lower() for record in meta["streams"]])
        built = [_built(streams[record["name"].lower()], record, blobs) for record in meta["streams"]]
    except (LookupError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        raise CheckpointError(
            f"the engine's snapshot is damaged ({type(error).__name__}: {error}); nothing was restored. "
            "Restore an older one, or start afresh with another checkpoint"
        ) from error
    for one in built:
        one.put_in_place()


# ---- out ----------------------------------------------------------------------------------------------------------


def _stream_record(running: RunningStream, blobs: dict[str, bytes]) -> dict[str, Any]:
    """What is known of one stream; its panes are added to the blobs, whose names are good names of files."""
    index_of: dict[Slice, int] = {}
    slices = _slice_records(running.slices, blobs, index_of)
    numbering = None
    if running.numbering is not None:
        counted = _slice_records(running.numbering.slices, blobs, index_of)
        numbering = {"slices": counted, **running.numbering.snapshot(blobs)}
    return {
        "name": running.stream.name,
        **_declared(running.stream),
        "watermark": _values(running.watermark, _WATERMARK),
        **_values(running, _STREAM),
        "slices": slices,
        "numbering": numbering,
        "queries": [
            {
                "name": query.name,
                "slice": index_of.get(query.slice),
                **_asked(query.plan),
                **_values(query, _QUERY),
                **_values(query.member, _MEMBER),
            }
            for query in running.queries.values()
        ],
    }


def _slice_records(
    slices: Mapping[tuple[str, str, tuple[str, ...]], Slice], blobs: dict[str, bytes], index_of: dict[Slice, int]
) -> list[dict[str, Any]]:
    records = []
    index_of |= {part: index for index, part in enumerate(slices.values())}
    for (_, predicate, keys), part in slices.items():
        state, panes = part.snapshot()
        name = f"slice-{len(blobs):06}"
        blobs[name] = panes
        derived = None
        if part.derivation is not None:
            more, less = ([index_of[one] for one in some] for some in (part.derivation.more, part.derivation.less))
            derived = {"how": part.derivation.how.value, "more": more, "less": less}
        records.append({"predicate": predicate, "keys": list(keys), "panes": name, "derived": derived, **state})
    return records


def _axis(plan: PeriodicAggregate) -> str:
    if plan.rows is None:
        return _TIME
    return _CONTENTS if plan.rows.partition_by else _ROWS


def _declared(stream: Stream) -> dict[str, Any]:
    """What the state of a stream depends on; LATENESS is not in it: the watermark never goes back, whatever it is."""
    return {"columns": [[field.name, str(field.type)] for field in stream.schema], "time": stream.time}


def _asked(plan: PeriodicAggregate) -> dict[str, Any]:
    """What the state of a query depends on."""
    values = [[one.name, None if one.value is None else one.value.sql("cql")] for one in plan.aggregations]
    return {
        "predicate": "" if plan.predicate is None else plan.predicate.sql("cql"),
        "keys": list(plan.key_names),
        "axis": _axis(plan),
        "partition": [] if plan.rows is None else list(plan.rows.partition_by),
        "window": [plan.window.length, plan.window.offset],
        "slide": plan.slide,
        "aggregates": values,
    }


def _values(owner: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in names}


# ---- in -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Restored:
    """A stream's state, complete, that is not in place yet."""

    running: RunningStream
    record: Mapping[str, Any]
    slices: list[Slice]
    numbering: Numbering | None
    members: list[tuple[Slice, Member]]

    def put_in_place(self) -> None:
        """Replace all state; nothing here can fail."""
        running, record = self.running, self.record
        _assign(running.watermark, record["watermark"], _WATERMARK)
        _assign(running, record, _STREAM)
        running.late.clear()
        keys = [_share_key(running, one) for one in record["slices"]]
        running.slices = dict(zip(keys, self.slices, strict=True))
        running.changed()
        running.numbering = self.numbering
        # Queries that are looked up together are in the order of their registration, which decides how floats round.
        running.queries = {one["name"]: running.queries[one["name"]] for one in record["queries"]}
        for query, one, place in zip(running.queries.values(), record["queries"], self.members, strict=True):
            query.slice, query.member = place
            _assign(query, one, _QUERY)
            query.batches.clear()


def _built(running: RunningStream, record: Mapping[str, Any], blobs: Mapping[str, bytes]) -> _Restored:
    """Check that the stream and its queries are those of the snapshot, and build their slices anew."""
    name = running.stream.name
    _check_same(f"stream {name}", {key: record[key] for key in ("columns", "time")}, _declared(running.stream))
    _check_names(f"queries on stream {name}", running.queries, [one["name"] for one in record["queries"]])
    for one in record["queries"]:
        _check_query(running, running.queries[one["name"]], one)
    counted = record["numbering"]
    for axis, records in ((_TIME, record["slices"]), (_ROWS, [] if counted is None else counted["slices"])):
        used = {one["slice"] for one in record["queries"] if one["axis"] == axis}
        if used != set(range(len(records))):
            raise ValueError(f"the queries of stream {name} do not use its {len(records)} slices")
    if (counted is None) != (running.numbering is None):
        raise ValueError(f"the queries of stream {name} count rows only in one of the two")
    slices = [_blank(running.slices[_share_key(running, one)]) for one in record["slices"]]
    numbering = None if counted is None else _blank_numbering(running, counted)
    parts = {_TIME: slices, _ROWS: [] if numbering is None else list(numbering.slices.values())}
    members = []
    for one in record["queries"]:
        query = running.queries[one["name"]]
        member = Member(
            query.plan.window,
            query.plan.slide,
            query.member.terms,
            origin=one["origin"],
            threshold=query.member.threshold,
            hint=query.member.hint,
        )
        part = _blank(query.slice) if one["axis"] == _CONTENTS else parts[one["axis"]][one["slice"]]
        part.add(member, None)
        _assign(member, one, _MEMBER)
        members.append((part, member))
    for part, one in zip(slices, record["slices"], strict=True):
        part.restore(one, blobs[one["panes"]])
        if one["derived"] is not None:
            more, less = (tuple(slices[index] for index in one["derived"][some]) for some in ("more", "less"))
            part.derivation = Derivation(Combine(one["derived"]["how"]), more, less)
    if numbering is not None:
        for part, one in zip(numbering.slices.values(), counted["slices"], strict=True):
            part.restore(one, blobs[one["panes"]])
        numbering.restore(counted, blobs)
    kept = (*(record["watermark"][key] for key in _WATERMARK), *(record[key] for key in _STREAM))
    counted = [one[key] for one in record["queries"] for key in (*_QUERY, *_MEMBER)]
    for number in (*kept, *counted):
        if not isinstance(number, int | float | None):
            raise TypeError(f"a number was expected in the record of stream {name}, found {number!r}")
    return _Restored(running, record, slices, numbering, members)


def _blank(registered: Slice) -> Slice:
    return Slice(registered.predicate, registered.keys, registered.synopsis, selected=registered.selected)


def _blank_numbering(running: RunningStream, record: Mapping[str, Any]) -> Numbering:
    """No numbers yet, with the slices and PARTITION BYs that are registered."""
    assert running.numbering is not None
    numbering = Numbering(running.stream)
    for one in record["slices"]:
        key = _share_key(running, one)
        numbering.slices[key] = _blank(running.numbering.slices[key])
    for plan in running.row_plans:
        if _axis(plan) == _CONTENTS:
            numbering.partition(plan)
    return numbering


def _share_key(running: RunningStream, record: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return running.stream.name.lower(), record["predicate"], tuple(record["keys"])


def _assign(owner: object, record: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        setattr(owner, name, record[name])


# ---- refusals -----------------------------------------------------------------------------------------------------


def check_kind(meta: Mapping[str, Any], synopsis: str | None) -> None:
    """Refuse a snapshot of another version, or of an engine with another forced synopsis."""
    if meta.get("version") != VERSION:
        raise CheckpointError(
            f"the engine's snapshot has version {meta.get('version')}, and this Windrow reads version {VERSION}; "
            "use the Windrow that wrote it, or start afresh with another checkpoint"
        )
    if meta.get("synopsis") != synopsis:
        raise CheckpointError(
            f"the engine's snapshot was made with synopsis={meta.get('synopsis')!r}, and this engine has "
            f"synopsis={synopsis!r}; use the same"
        )


def _check_names(what: str, registered: Iterable[str], stored: Iterable[str]) -> None:
    found, wanted = list(registered), list(stored)
    missing = [name for name in wanted if name not in found]
    unknown = [name for name in found if name not in wanted]
    if missing or unknown:
        told = [f"{', '.join(missing)} must be registered first"] if missing else []
        told += [f"it does not know {', '.join(unknown)}: register them after it is restored"] if unknown else []
        raise CheckpointError(
            f"the {what} are not those of the engine's snapshot, which has {', '.join(wanted) or 'none'}: "
            f"{'; '.join(told)}. Nothing was restored"
        )
    if len(found) != len(wanted):
        raise ValueError(f"one of the {what} is there twice: {', '.join(wanted)}")


def _check_query(running: RunningStream, query: RunningQuery, record: Mapping[str, Any]) -> None:
    _check_same(f"query {query.name} on stream {running.stream.name}", record, _asked(query.plan))


def _check_same(what: str, stored: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for key, value in found.items():
        if stored[key] != value:
            raise CheckpointError(
                f"{what} is not that of the engine's snapshot: its {key} was {stored[key]} there and is {value} now. "
                "Declare it as it was, or start it afresh under another name. Nothing was restored"
            )
