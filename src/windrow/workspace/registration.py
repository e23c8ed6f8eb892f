"""Streams, relations, queries and aggregates of the user come into a database, and go; what must not be is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.errors import CatalogError, StateError
from windrow.language.binder import bind
from windrow.language.catalog import Relation, Stream
from windrow.language.user_functions import UserFunction
from windrow.plan.build import build
from windrow.query import Query
from windrow.relations import every_relation
from windrow.state.choice import Strategy
from windrow.workspace.endpoints import endpoint_notes
from windrow.workspace.registry import Registry
from windrow.workspace.relation_rows import RelationRows
from windrow.workspace.runs import Runs

if TYPE_CHECKING:
    from windrow.pipeline.sinks import SinkSpec


class Registration:
    """Changes the registry, and with it the engine or the run that goes on."""

    def __init__(self, registry: Registry, runs: Runs, relations: RelationRows) -> None:
        self.registry = registry
        self._runs = runs
        self._relations = relations

    def add_stream(self, stream: Stream) -> None:
        """Declare a stream."""
        self.registry.check_free(stream.name, Stream)
        self._runs.require_none(f"; stop it with db.stop() before you declare stream {stream.name}")
        self.registry.catalog.add(stream)
        self.registry.engine.add_stream(stream)

    def add_relation(self, relation: Relation) -> None:
        """Declare a relation; its rows are read when they are needed."""
        self.registry.check_free(relation.name, Relation)
        self.registry.catalog.add(relation)

    def add_aggregate(self, function: UserFunction) -> None:
        """Have an aggregate of the user; another one of its name must be in nobody's use."""
        catalog = self.registry.catalog
        known = catalog.functions.get(function.name)
        if known is not None and known != function:
            users = [query.name for query in self.registry.queries.values() if known in query.functions]
            if users:
                raise CatalogError(
                    f"the aggregate {function.name} is {known.place} and is used by {', '.join(users)}; drop "
                    f"{'these queries' if len(users) > 1 else 'that query'} first, or choose another name"
                )
        catalog.functions[function.name] = function

    def add_query(
        self, name: str, text: str | exp.Expr, into: SinkSpec | None = None, strategy: Strategy = "upa"
    ) -> Query:
        """Register a query."""
        registry = self.registry
        registry.check_free(name, Query)
        bound = bind(text, registry.catalog)
        plan = build(bound)
        for stream in bound.streams:
            if registry.engine.streams[stream.name.lower()].finished:
                raise StateError(
                    f"stream {stream.name} has ended (finish was called), so query {name} would get no answers; "
                    "register queries before finish"
                )
        for source in every_relation(bound):
            assert source.relation is not None
            self._relations.expect(source.relation)
        running = self._runs.register(name, bound, plan, into, strategy)
        query = registry.queries[name.lower()] = Query(
            bound, plan, running, registry.engine, registry.turn,
            lambda: endpoint_notes(bound.streams, registry.frames, into),
        )  # fmt: skip
        if into is not None:
            registry.into[name.lower()] = into
        return query

    def drop_query(self, query: Query) -> None:
        """Its share of the state is freed."""
        self._runs.drop(query)
        del self.registry.queries[query.name.lower()]
        self.registry.into.pop(query.name.lower(), None)

    def drop_stream(self, stream: Stream) -> None:
        """The engine refuses if queries read it."""
        self._runs.require_none(f"; stop it with db.stop() before you drop stream {stream.name}")
        self.registry.engine.remove_stream(stream.name)
        self.registry.frames.pop(stream.name.lower(), None)
        self._runs.forget(stream.name)
        self.registry.catalog.remove(stream.name)

    def drop_relation(self, relation: Relation) -> None:
        """With its rows, unless queries read it."""
        self._runs.require_none(f"; stop it with db.stop() before you drop relation {relation.name}")
        users = [query.name for query in self.registry.engine.flows.readers(relation)]
        if users:
            raise StateError(f"relation {relation.name} is read by {', '.join(users)}; drop them first")
        self._relations.forget(relation)
        self.registry.catalog.remove(relation.name)
