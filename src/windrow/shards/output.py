"""Whether the output of shards can be put together: the ways to deal that give the output of one place.

changes              always: what comes in one shard and goes in another cancels when they are merged
complete answers     at due times; without SLIDE nobody knows when the answer of all shards has changed
ISTREAM, DSTREAM,    compare rows, so that equal ones must be in one shard: the key is in the output, or nothing is
…_RESTORE, WSTREAM   ever taken back, and nothing cancels
"""

from __future__ import annotations

from windrow.flow.kinds import kind_of
from windrow.language.bound import BoundQuery, Source
from windrow.plan import nodes
from windrow.plan.patterns import Pattern, pattern
from windrow.shards.spread import Spread, StaysTogetherError
from windrow.windows.spec import RowsWindow


def spread_output(query: BoundQuery, plan: nodes.Output, spread: Spread) -> Spread:
    """The ways of the answer that are also ways of the output."""
    if spread.whole:
        raise StaysTogetherError("it reads no stream")
    for source in query.sources:
        _check_end(query, source)
    kind = kind_of(query)
    operator = query.operator or "an INTERNAL window"
    if kind == "complete" and not query.periodic:
        raise StaysTogetherError(f"{operator} without SLIDE gives the whole answer whenever any of its rows changes")
    if query.operator == "WSTREAM" and isinstance(query.output_window, RowsWindow):
        raise StaysTogetherError("the window of WSTREAM counts the rows of all keys")
    internal = [source.window.internal for source in query.sources if source.window is not None]
    some = any(internal) and not all(internal)  # a result stays by its own rules (`flow/staying.py`)
    plain = kind in ("changes", "complete") and not some and query.operator != "WSTREAM"
    lasting = not any(internal) and pattern(plan.input) is Pattern.MON and not kind.startswith("restored")
    if plain or lasting:
        return spread
    return spread.keyed(f"{operator} compares rows of the answer, and the key is not among its columns")


def _check_end(query: BoundQuery, source: Source) -> None:
    """A subquery may end after its streams, at a due time: but in those shards only that have an answer then."""
    inner = source.subquery
    if inner is None or inner.slide is None:
        return
    if query.slide is None or query.slide % inner.slide:
        raise StaysTogetherError(
            f"the answers of ({source.alias}) may come after the end of its streams; only a SLIDE of {inner.slide} "
            "ticks or a multiple around it ends in all shards at once"
        )
