"""What comes back from the shards, put together query by query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.shards.merging import merge
from windrow.shards.remote import Held, RemoteFlow
from windrow.shards.shard import ANSWERS, ERROR, HELD, Answer, held_of


@dataclass(eq=False)
class Delivery:
    """Of one query: its answers in the order of time, and why it cannot go on, if it cannot."""

    batch: pa.RecordBatch | None = None
    error: str | None = None
    held: Held | None = None
    _answers: list[Answer] = field(default_factory=list)


def deliveries(answers: Iterable[Answer], flow_of: Callable[[str], RemoteFlow | None]) -> dict[str, Delivery]:
    """The answers of all shards to the same posts; those of queries that are not there any more are left out.

    A query that fails in one shard has failed at that post: what other shards answered to it or later is no answer.
    """
    found: dict[str, Delivery] = {}
    failed: dict[str, tuple[int, str]] = {}
    every = list(answers)
    for one in every:
        if one.kind == ERROR:
            failed[one.query] = min(failed.get(one.query, (one.post, one.data.decode())), (one.post, one.data.decode()))
        elif one.kind == ANSWERS:
            found.setdefault(one.query, Delivery())._answers.append(one)
    for query, held in held_of([one for one in every if one.kind == HELD]).items():
        found.setdefault(query, Delivery()).held = Held(*held)
    for query, (_, why) in failed.items():
        found.setdefault(query, Delivery()).error = why
    for query in list(found):
        flow = flow_of(query)
        if flow is None:
            del found[query]
            continue
        last = failed[query][0] if query in failed else None
        rows = [one.rows for one in found[query]._answers if last is None or one.post < last]
        if rows:
            found[query].batch = merge(rows, flow.schema, flow.kind, apart=flow.key.apart)
    return found
