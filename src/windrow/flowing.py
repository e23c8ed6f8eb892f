"""A query that is maintained by operators: its flow, its answers so far, and when it may move on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from windrow.flow.flow import Flow
from windrow.flow.leaves import BEGINNING
from windrow.joined.shape import JoinShape
from windrow.relations import every_relation
from windrow.running import Registered, RunningStream
from windrow.state.choice import Strategy


@dataclass(eq=False)
class FlowQuery(Registered):
    """Registered like any other query; all its streams together decide how far time has come."""

    flow: Flow
    finished: bool = False
    shape: JoinShape | None = None
    """What it is over its join, if others may share that."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its answers."""
        return self.flow.schema

    @property
    def since(self) -> int | None:
        """Tuples at or before this tick are in none of its windows; None when it has seen the whole stream."""
        return None if self.flow.since == BEGINNING else self.flow.since

    @property
    def next_due(self) -> int | None:
        """When it is due next."""
        slide = self.flow.query.slide
        return None if slide is None or self.flow.upto == BEGINNING else (self.flow.upto // slide + 1) * slide

    @property
    def state(self) -> dict[str, int]:
        """The rows that its operators hold, and their bytes; nothing when it has ended."""
        if self.status != "running":
            return {"state_rows": 0, "state_bytes": 0}
        return {"state_rows": self.flow.rows, "state_bytes": self.flow.nbytes}

    @property
    def streams(self) -> set[str]:
        """The streams that it reads, by lower-case name."""
        return self.flow.streams

    @property
    def strategy(self) -> Strategy:
        """How its operators keep their state."""
        return self.flow.strategy

    @property
    def _newest_instant(self) -> int | None:
        if self.flow.query.slide is not None:
            return None if self.flow.answered == BEGINNING else self.flow.answered
        # Between two changes nothing happens: the newest answer is that of the last change.
        last = self.batches[-1] if self.batches else self.latest
        return None if last is None else int(last.column(0).cast(pa.int64())[-1].as_py())

    @property
    def relations(self) -> set[str]:
        """The relations that it reads, by lower-case name."""
        return {source.name.lower() for source in every_relation(self.flow.query)}

    def move(self, streams: Mapping[str, RunningStream]) -> None:
        """Answer what its streams have completed: up to the least of their watermarks, or to their end."""
        if self.finished:
            return
        began = perf_counter()
        own = [streams[name] for name in self.streams]
        batches: list[pa.RecordBatch] = []
        if all(one.finished for one in own):
            self.finished = True
            newest = {name: streams[name].watermark.newest for name in self.streams}
            oldest = {name: streams[name].watermark.oldest for name in self.streams}
            batches = self.flow.finish(newest, oldest)
        else:
            marks = [_mark(one) for one in own]
            known = [one.watermark.oldest for one in own if one.watermark.oldest is not None]
            if None not in marks:  # also without a tuple: relations change, too
                upto = min(mark for mark in marks if mark is not None)
                batches = self.flow.advance(upto, min(known, default=None))
        for batch in batches:
            self.add(batch)
        self.due += len(batches)
        self.seconds += perf_counter() - began


def _mark(one: RunningStream) -> int | None:
    """How far a stream is complete; one that has ended holds nobody back."""
    return (1 << 62) if one.finished else one.watermark.value
