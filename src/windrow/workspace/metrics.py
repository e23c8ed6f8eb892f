"""The counters of a database: what its streams have brought, what its queries have answered, how the schedule does."""

from __future__ import annotations

from typing import Any

from windrow.live import LiveSchedule
from windrow.query import Query
from windrow.running import RunningStream
from windrow.workspace.registry import Registry
from windrow.workspace.runs import Runs


def metrics(registry: Registry, runs: Runs) -> dict[str, Any]:
    """Per stream and query, and of the run that goes on."""
    schedule = runs.schedule
    told: dict[str, Any] = {
        "run": runs.state,
        "streams": {running.stream.name: _of_stream(running) for running in registry.engine.streams.values()},
        "queries": {query.name: _of_query(query, schedule) for query in registry.queries.values()},
    }
    if schedule is not None:
        told["schedule"] = schedule.figures()
    return told


def _of_stream(running: RunningStream) -> dict[str, Any]:
    numbered = 0 if running.numbering is None else len(running.numbering.slices)
    return {
        "read": running.rows,
        "late": running.late_rows,
        "batches": running.batches,
        "watermark": running.watermark.value,
        "slices": len(running.slices) + numbered,
        "state_bytes": running.nbytes,
    }


def _of_query(query: Query, schedule: LiveSchedule | None) -> dict[str, Any]:
    if schedule is None:
        return query.metrics()
    streams = sorted(query.running.streams)
    return query.metrics() | schedule.query(streams[0], query.name)
