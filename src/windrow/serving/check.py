"""`windrow check`: every error of a script at once, without Spark and without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import windrow
from windrow.flowing import FlowQuery
from windrow.serving.script import Loaded, load_file

MANY = 4
"""Longer lists of names are cut."""


@dataclass(frozen=True)
class Checked:
    """One script: what it would register, or what is wrong with it."""

    loaded: Loaded
    streams: int
    relations: int
    queries: int
    with_operators: int
    """Queries that have operators of their own: they share no panes."""
    share_groups: int
    doubts: list[str]
    """What a run may stumble over all the same."""

    @property
    def good(self) -> bool:
        """True when every statement can be run."""
        return not self.loaded.faults

    @property
    def sentence(self) -> str:
        """`2 streams, 240 queries in 4 share groups`."""
        parts = [_count(self.streams, "stream", "streams")]
        parts += [_count(self.relations, "relation", "relations")] if self.relations else []
        parts.append(_count(self.queries, "query", "queries"))
        groups, sharing = _count(self.share_groups, "share group", "share groups"), self.queries - self.with_operators
        if not self.with_operators:
            return ", ".join(parts) + (f" in {groups}" if self.queries else "")
        own = f"with operators of {'its' if self.with_operators == 1 else 'their'} own"
        shared = f": {sharing:,} in {groups}, {self.with_operators:,} {own}" if sharing else f" {own}"
        return ", ".join(parts) + shared

    @property
    def unchecked_lines(self) -> list[str]:
        """One line for each declaration that failed and that others need."""
        return [
            f"not checked: {_count(len(names), 'statement', 'statements')} on {missing}, which is not declared because "
            f"of the error above: {', '.join(names[:MANY])}" + (f" and {len(names) - MANY} more" * (len(names) > MANY))
            for missing, names in self.loaded.unchecked.items()
        ]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.loaded.file,
            "good": self.good,
            "streams": self.streams,
            "relations": self.relations,
            "queries": self.queries,
            "with_operators": self.with_operators,
            "share_groups": self.share_groups,
            "errors": [fault.record() for fault in self.loaded.faults],
            "not_checked": self.loaded.unchecked,
            "warnings": self.doubts,
        }


def check(path: str) -> Checked:
    """Parse, bind and plan all statements of a script as a run would, in a database that is then forgotten."""
    db = windrow.connect()
    return checked(db, load_file(db, path))


def checked(db: windrow.Database, loaded: Loaded) -> Checked:
    """What a loaded script amounts to."""
    sources = [type(source).__name__ for source in db.catalog]
    slices = sum(stream["slices"] for stream in db.metrics()["streams"].values())
    streams, relations = sources.count("Stream"), sources.count("Relation")
    flows = sum(isinstance(query.running, FlowQuery) for query in db.queries())
    return Checked(loaded, streams, relations, len(db.queries()), flows, slices, _doubts(db, loaded))


def _doubts(db: windrow.Database, loaded: Loaded) -> list[str]:
    empty = ["it registers no query, so there is nothing to run"] if not (db.queries() or loaded.faults) else []
    return [*db.doubts(), *empty]


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
