"""Whether a continuous query can run in shards, and by which columns its tuples are dealt to them.

N shards run the same query, each over the tuples whose key hashes to it; relations are whole in all of them. That gives
the answers of one place if rows that meet (in a join, a group, a comparison) always have equal keys (`spreading.py`),
and if the outputs can be put together (`output.py`).

Often there are several ways. Taken is the first, in this order: the key is in the output, where equal rows need no
search across shards; no key is a BOOLEAN, which deals to two shards; none is the time of its stream, by which a burst
goes to one shard; then the order in which streams (by name) and their columns are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.language import types
from windrow.language.bound import BoundQuery
from windrow.plan import nodes
from windrow.shards.spread import StaysTogetherError, Way
from windrow.shards.spreading import spread_query


@dataclass(frozen=True)
class ShardKey:
    """By which column the tuples of each stream are dealt, wherever the query reads it."""

    columns: Mapping[str, str]
    """From the lower-case name of a stream to the column."""
    apart: bool
    """Whether the key is in the output, so that equal rows never come from two shards."""

    def __str__(self) -> str:
        return ", ".join(f"{stream}.{column}" for stream, column in sorted(self.columns.items()))


def shard_key(query: BoundQuery, plan: nodes.Output) -> ShardKey | str:
    """The key, or a sentence that says why the query must stay in one place; `plan` is the one that runs."""
    try:
        ways = spread_query(query, plan).ways
    except StaysTogetherError as reason:
        return str(reason)
    assert ways  # a query without any would have been refused
    best = min(ways, key=lambda way: _preference(query, way))
    columns = dict(sorted(best.columns.items()))
    return ShardKey(columns, bool(best.places))


def _preference(query: BoundQuery, way: Way) -> tuple[bool, int, int, list[tuple[str, int]]]:
    booleans = times = 0
    order = []
    for stream in sorted(query.streams, key=lambda one: one.name.lower()):
        column = stream.column(way.columns[stream.name.lower()])
        booleans += types.is_boolean(column.type)
        times += column.name.lower() == stream.time.lower()
        order.append((stream.name.lower(), stream.columns.index(column)))
    return not way.places, booleans, times, order
