"""Snapshots of queries that operators maintain: tables as Arrow IPC, the rest as JSON; never pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.errors import CheckpointError
from windrow.flow.flow import Flow
from windrow.flowing import FlowQuery
from windrow.relations import Relations
from windrow.snapshots import check_kind

_QUERY = ("due", "answered", "seconds", "finished")


@dataclass(frozen=True)
class Built:
    """Flows with their state, complete, that are not in place yet."""

    flows: list[tuple[str, Flow, Mapping[str, Any]]]
    relations: Relations


def snapshot_flows(flows: Mapping[str, FlowQuery], relations: Relations, blobs: dict[str, bytes]) -> dict[str, Any]:
    """The state of these queries and of all relations; tables are added to the blobs."""
    records = []
    for query in flows.values():
        meta, tables = query.flow.snapshot()
        record = {"name": query.name, "text": query.flow.query.text, "strategy": query.flow.strategy, "state": meta}
        record |= {key: getattr(query, key) for key in _QUERY} | {"remote": query.flow.remote}
        records.append(record | {"tables": stored_tables(tables, blobs)})
    return {"queries": records, "relations": stored_tables(relations.snapshot(), blobs)}


def built_flows(
    flows: Mapping[str, FlowQuery],
    synopsis: str | None,
    meta: Mapping[str, Any],
    blobs: Mapping[str, bytes],
    fresh: Callable[[Flow, Mapping[str, Any]], Flow],
) -> Built:
    """The flows of registered queries with the state of a snapshot, or a CheckpointError and nothing is changed.

    `fresh` makes a flow without state like that one, as a record says: in shards, with others, or alone.
    """
    try:
        check_kind(meta, synopsis)
        records = meta["flows"]["queries"]
        found, wanted = sorted(flows), sorted(record["name"] for record in records)
        if found != wanted:
            raise CheckpointError(
                f"the queries with operators of their own are not those of the engine's snapshot: registered are "
                f"{', '.join(found) or 'none'}, it has {', '.join(wanted) or 'none'}. Nothing was restored"
            )
        built = []
        for record in records:
            flow = flows[record["name"]].flow
            for key, value in (("text", flow.query.text), ("strategy", flow.strategy)):
                if record[key] != value:
                    raise CheckpointError(
                        f"query {record['name']} is not that of the engine's snapshot: its {key} was {record[key]} "
                        f"there and is {value} now. Nothing was restored"
                    )
            flow = fresh(flow, record)
            flow.restore(record["state"], loaded_tables(record["tables"], blobs))
            built.append((record["name"], flow, record))
        relations = Relations()
        relations.restore(loaded_tables(meta["flows"]["relations"], blobs))
    except (LookupError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        raise CheckpointError(
            f"the engine's snapshot is damaged ({type(error).__name__}: {error}); nothing was restored. "
            "Restore an older one, or start afresh with another checkpoint"
        ) from error
    return Built(built, relations)


def put_flows_in_place(flows: dict[str, FlowQuery], relations: Relations, built: Built) -> None:
    """Replace all state; nothing here can fail."""
    ordered = {}
    for name, flow, record in built.flows:
        query = ordered[name] = flows[name]
        query.flow = flow
        for key in _QUERY:
            setattr(query, key, record[key])
        query.batches.clear()
    flows.clear()
    flows.update(ordered)
    relations.restore(built.relations.snapshot())


def stored_tables(tables: Mapping[str, pa.Table], blobs: dict[str, bytes]) -> dict[str, Any]:
    """All tables in one blob, one IPC stream after the other: a checkpoint pays for every file that it writes."""
    sink = pa.BufferOutputStream()
    places = {}
    for name, table in tables.items():
        places[name] = sink.tell()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    blob = f"flow-{len(blobs):06}"
    blobs[blob] = sink.getvalue().to_pybytes()
    return {"blob": blob, "places": places}


def loaded_tables(stored: Mapping[str, Any], blobs: Mapping[str, bytes]) -> dict[str, pa.Table]:
    """The inverse."""
    whole = pa.py_buffer(blobs[stored["blob"]])
    tables = {}
    for name, place in stored["places"].items():
        with pa.ipc.open_stream(whole.slice(place)) as reader:
            tables[name] = reader.read_all()
    return tables
