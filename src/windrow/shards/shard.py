"""One shard: the flows of the queries, on the tuples that were dealt to it. It does what posts tell, in their order.

posts ─► Shard ─► answers (query, post, kind, data)
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import Error
from windrow.expressions import Compiler
from windrow.flow.faults import own_faults
from windrow.flow.flow import Flow
from windrow.flow_snapshots import loaded_tables, stored_tables
from windrow.kernels.jit import Ints
from windrow.language.binder import bind
from windrow.language.catalog import Catalog
from windrow.language.records import relation_from_json, stream_from_json
from windrow.optimizer.rules import optimized
from windrow.plan.build import build
from windrow.shards.calls import Post
from windrow.shards.outbox import TIMES
from windrow.sliced import batch_of, ipc

ANSWERS, ERROR, HELD = "answers", "error", "held"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a shard says of a query: rows of answers, why it cannot go on, or what it holds."""

    query: str
    post: int
    kind: str
    data: bytes

    @property
    def rows(self) -> pa.RecordBatch:
        """The rows of kind `answers`."""
        return batch_of(self.data)


class Shard:
    """Flows by the name of their query."""

    def __init__(self) -> None:
        self.next = 0
        """The number of the post that it waits for."""
        self._early: dict[int, Post] = {}
        self._opened: dict[str, dict[str, Any]] = {}
        self._flows: dict[str, Flow] = {}
        self._compiler = Compiler()

    def take(self, post: Post) -> list[Answer]:
        """Do what a post tells, and those that waited for it; one that was done before is passed over."""
        if post.number >= self.next:
            # A directory may show a new file before an older one.
            self._early[post.number] = post
        said: list[Answer] = []
        while self.next in self._early:
            said += self._obey(self._early.pop(self.next))
            self.next += 1
        return said

    @property
    def complete(self) -> bool:
        """Whether no post waits for an earlier one."""
        return not self._early

    def _obey(self, post: Post) -> list[Answer]:
        said: list[Answer] = []
        for query, what, *arguments in post.calls:
            try:
                with own_faults():
                    batches = self._do(post, query, what, arguments)
            except Error as error:
                said.append(self._fail(query, post, str(error)))
                continue
            said += [Answer(query, post.number, ANSWERS, ipc(batch)) for batch in batches if batch.num_rows]
        return said

    def held(self) -> list[Answer]:
        """How far each query has come here, and what it holds."""
        return [
            Answer(name, self.next - 1, HELD, json.dumps([flow.upto, flow.rows, flow.nbytes]).encode())
            for name, flow in self._flows.items()
        ]

    def _do(self, post: Post, query: str, what: str, arguments: list[Any]) -> list[pa.RecordBatch]:
        if what == "open":
            self._open(query, arguments[0])
            return []
        flow = self._flows.get(query)
        if flow is None:
            return []  # it has failed here, and others have not heard of it yet
        match what:
            case "add":
                stream, number = arguments
                if number in post.tables:
                    flow.add(stream, *_with_times(post.tables[number]))
            case "see":
                flow.see(*arguments)
            case "update":
                relation, came, gone, time = arguments
                flow.update(relation, post.tables.get(came), post.tables.get(gone), time)
            case "advance":
                return flow.advance(*arguments)
            case "finish":
                return flow.finish(*arguments)
            case "drop":
                del self._flows[query], self._opened[query]
        return []

    def _open(self, query: str, definition: dict[str, Any]) -> None:
        self._opened[query] = definition
        catalog = Catalog()
        for record in definition["streams"]:
            catalog.add(stream_from_json(record))
        for record in definition["relations"]:
            catalog.add(relation_from_json(record))
        bound = bind(definition["text"], catalog)
        plan = build(bound)
        if definition["optimizer"]:
            plan, _ = optimized(plan)
        self._flows[query] = Flow(
            bound, plan, self._compiler, strategy=definition["strategy"], since=definition["since"]
        )  # fmt: skip

    def _fail(self, query: str, post: Post, why: str) -> Answer:
        self._flows.pop(query, None)
        self._opened.pop(query, None)
        return Answer(query, post.number, ERROR, why.encode())

    # ---- state ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that later answers depend on, of a complete one: a JSON header, and Arrow IPC behind it."""
        blobs: dict[str, bytes] = {}
        queries = []
        for name, flow in self._flows.items():
            meta, tables = flow.snapshot()
            queries.append([name, self._opened[name], meta, stored_tables(tables, blobs)])
        header = {"next": self.next, "queries": queries, "blobs": [[name, len(one)] for name, one in blobs.items()]}
        said = json.dumps(header).encode()
        return b"".join([_LENGTH.pack(len(said)), said, *blobs.values()])

    @classmethod
    def restored(cls, data: bytes) -> Shard:
        """The shard that gave the snapshot."""
        begin = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        header = json.loads(data[_LENGTH.size : begin])
        blobs: dict[str, bytes] = {}
        for name, size in header["blobs"]:
            blobs[name] = data[begin : begin + size]
            begin += size
        shard = cls()
        shard.next = header["next"]
        for name, definition, meta, stored in header["queries"]:
            shard._open(name, definition)
            shard._flows[name].restore(meta, loaded_tables(stored, blobs))
        return shard


def _with_times(batch: pa.RecordBatch) -> tuple[pa.Table, Ints]:
    """Tuples, and their timestamps."""
    table = pa.Table.from_batches([batch])
    return table.drop_columns([TIMES]), np.array(batch.column(TIMES).to_numpy())


def held_of(answers: list[Answer]) -> Mapping[str, tuple[int, int, int]]:
    """How far each query has come in all shards, and what they hold together, from answers of kind `held`."""
    found: dict[str, tuple[int, int, int]] = {}
    for one in answers:
        upto, rows, nbytes = json.loads(one.data)
        before = found.get(one.query)
        found[one.query] = (
            (upto, rows, nbytes) if before is None else (min(before[0], upto), before[1] + rows, before[2] + nbytes)
        )
    return found
