"""What a database holds: streams, relations and queries in one space of names, and the engine that they live in."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from windrow.engine import Engine
from windrow.errors import CatalogError
from windrow.language.arguments import expect_text
from windrow.language.catalog import Catalog, Relation, Stream
from windrow.query import Query
from windrow.running import Registered

if TYPE_CHECKING:
    from windrow.pipeline.launch import Wanted
    from windrow.pipeline.sinks import SinkSpec

_Kind = TypeVar("_Kind", Stream, Relation, Query)


class Registry:
    """The tables of one database; whoever uses it has the `turn`."""

    def __init__(self, engine: Engine, turn: RLock) -> None:
        self.engine = engine
        """The database's own, or that of its last run."""
        self.turn = turn
        self.catalog = Catalog()
        self.frames: dict[str, Any] = {}
        """Streams that are Spark DataFrames of the user."""
        self.queries: dict[str, Query] = {}
        self.into: dict[str, SinkSpec] = {}
        """Where the queries with INTO write."""

    # ---- names ----------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Stream | Relation | Query | None:
        """What has this name, if something has."""
        return self.queries.get(name.lower()) or self.catalog.get(name)

    def find(self, name: str, kind: type[_Kind]) -> _Kind:
        """The stream, relation or query of this name, or an error that helps."""
        wanted = kind.__name__.lower()
        found = self.get(expect_text(name, f"the name of a {wanted}"))
        if isinstance(found, kind):
            return found
        if found is not None:
            raise CatalogError(f"{found.name} is a {type(found).__name__.lower()}, not a {wanted}")
        known = ", ".join(query.name for query in self.queries.values())
        hint = f"; there are: {known or 'none'}" if kind is Query else self.catalog.suggestion(name)
        raise CatalogError(f"there is no {wanted} {name}{hint}")

    def check_free(self, name: str, kind: type[_Kind]) -> None:
        """Refuse a name that something has, or that nobody could write."""
        wanted = kind.__name__.lower()
        if not expect_text(name, f"the name of a {wanted}").strip():
            raise CatalogError(f"a {wanted} needs a name that is not blank, found {name!r}")
        found = self.get(name)
        if found is not None:
            what = type(found).__name__.lower()
            raise CatalogError(f"{what} {found.name} already exists; drop it first, or choose another name")

    def new_name(self) -> str:
        """A name for a query whose user gave none."""
        number = len(self.queries) + 1
        while self.get(f"query_{number}") is not None:
            number += 1
        return f"query_{number}"

    # ---- for a run ------------------------------------------------------------------------------------------------

    def wanted(self) -> list[Wanted]:
        """The registered queries."""
        from windrow.pipeline.launch import Wanted

        return [Wanted(one.name, one.text, self.into.get(name), one.running) for name, one in self.queries.items()]

    def attach(self, engine: Engine, queries: Mapping[str, Registered]) -> None:
        """Go on with the engine of a run: the database's own, or one that was recovered from a checkpoint."""
        self.engine = engine
        for name, query in self.queries.items():
            query.attach(engine, queries[name])
