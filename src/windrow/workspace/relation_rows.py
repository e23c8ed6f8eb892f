"""The rows of a database's relations: those with a source are read when they are first needed, and not before."""

from __future__ import annotations

import pyarrow as pa

from windrow.language.catalog import Relation
from windrow.workspace.registry import Registry
from windrow.workspace.runs import Runs


class RelationRows:
    """Fills relations; what comes and goes later is the business of the run or of the engine."""

    def __init__(self, registry: Registry, runs: Runs) -> None:
        self._registry = registry
        self._runs = runs
        self._unread: set[str] = set()
        """Relations with a source that queries read, and that are read when the first tuples come."""

    def rows(self, relation: Relation) -> pa.Table:
        """All of them."""
        self.fill(relation)
        return self._registry.engine.flows.relations.table(relation)

    def fill(self, relation: Relation) -> None:
        """Have its rows, if they are not here yet."""
        if not self._known(relation):
            rows = relation.schema.empty_table()
            if relation.format is not None:
                rows = self._runs.control.read_relation(relation)
            self._runs.load(relation, rows)
        self._unread.discard(relation.name)

    def expect(self, relation: Relation) -> None:
        """A query is about to read it."""
        if self._runs.going or relation.format is None or self._known(relation):
            self.fill(relation)
        else:
            self._unread.add(relation.name)  # a check of a script starts no Spark

    def fill_expected(self) -> None:
        """Before tuples come: read the relations that queries join them with."""
        for name in list(self._unread):
            relation = self._registry.find(name, Relation)
            if self._registry.engine.flows.readers(relation):
                self.fill(relation)
            self._unread.discard(name)

    def forget(self, relation: Relation) -> None:
        """It was dropped."""
        self._registry.engine.flows.relations.forget(relation)
        self._unread.discard(relation.name)

    def _known(self, relation: Relation) -> bool:
        return self._registry.engine.flows.relations.known(relation)
