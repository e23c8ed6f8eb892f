"""The runs of a database: what changes while one goes on passes through it, so that its checkpoint knows of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.errors import StateError
from windrow.language.bound import BoundQuery
from windrow.language.catalog import Relation
from windrow.live import LiveSchedule
from windrow.plan.nodes import Output
from windrow.progress import Summary
from windrow.query import Query
from windrow.running import Registered
from windrow.state.choice import Strategy
from windrow.workspace.registry import Registry

if TYPE_CHECKING:
    from windrow.pipeline.control import Control
    from windrow.pipeline.launch import Request
    from windrow.pipeline.sinks import SinkSpec


class Runs:
    """One run at a time, and Spark, which is only imported when it is needed."""

    def __init__(
        self,
        registry: Registry,
        *,
        master: str | None,
        spark: Any,
        settings: Mapping[str, str] | None,
        log: str | Path | None,
    ) -> None:
        self._registry = registry
        self._session = {"master": master, "spark": spark, "settings": settings, "log": log}
        self._control: Control | None = None

    @property
    def control(self) -> Control:
        """The way to Spark."""
        if self._control is None:
            from windrow.pipeline.control import Control

            self._control = Control(self._registry, **self._session)
        return self._control

    @property
    def going(self) -> bool:
        """Whether a run is going on."""
        return self._control is not None and self._control.active

    @property
    def state(self) -> dict[str, str | None]:
        """For those who watch: none, running or failed, and why."""
        failure = self._control.failure if self._control is not None else None
        state = "none" if not self.going else "running" if failure is None else "failed"
        return {"state": state, "error": None if failure is None else f"{type(failure).__name__}: {failure}"}

    @property
    def schedule(self) -> LiveSchedule | None:
        """Of the live run that goes on, or of the last one, if it has one."""
        return None if self._control is None else self._control.schedule

    def require_none(self, advice: str) -> None:
        """Refuse what cannot be done while a run is going on; `advice` ends the sentence."""
        if self.going:
            raise StateError(f"a run is going on{advice}")

    def replay(self, request: Request, *, finish: bool) -> Summary:
        """Read every source to its end; a terminal shows how far it is, unless somebody else is told."""
        if request.progress is not None or not sys.stderr.isatty():
            return self.control.replay(request, finish=finish)
        from windrow.display import display_for

        with display_for(quiet=False, as_json=False) as display:
            return self.control.replay(replace(request, progress=display), finish=finish)

    def forget(self, stream: str) -> None:
        """A stream was dropped."""
        if self._control is not None:
            self._control.forget(stream)

    def close(self) -> None:
        """Stop a run, and the Spark that was started for it."""
        if self._control is not None:
            self._control.close()

    # ---- in the run that goes on, else in the engine ---------------------------------------------------------------

    def register(
        self, name: str, bound: BoundQuery, plan: Output, into: SinkSpec | None, strategy: Strategy
    ) -> Registered:
        """A query comes."""
        if self.going:
            return self.control.add(name, bound.text, into, strategy)
        return self._registry.engine.register(name, bound, plan, strategy)

    def drop(self, query: Query) -> None:
        """A query goes."""
        if self.going:
            self.control.drop(query.name)
        else:
            self._registry.engine.drop_query(query.running)

    def load(self, relation: Relation, rows: pa.Table) -> None:
        """The first rows of a relation."""
        load = self.control.load if self.going else self._registry.engine.flows.load_relation
        load(relation, rows)

    def update(self, relation: Relation, came: Any, gone: Any, time: int | None) -> int | None:
        """Rows of a relation come and go; gives the instant."""
        update = self.control.update if self.going else self._registry.engine.flows.update
        return update(relation, came, gone, time)
