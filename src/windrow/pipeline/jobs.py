"""The jobs of a run: what workers must do for each stream, made anew only when its queries or panes have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.engine import Engine
from windrow.job import Job


@dataclass(frozen=True)
class _Made:
    """A job, and what it was made from."""

    version: object
    derived: tuple[int, ...]
    job: Job
    alive: object
    """What `version` has the identities of: no other object gets them as long as this one is here."""


class Jobs:
    """The newest job of each stream of an engine; the same object as long as it holds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made: dict[str, _Made] = {}

    def of(self, stream: str, derived: Sequence[int] | None = None) -> Job:
        """What workers must do for this stream.

        `derived` are the numbers of slices that they need not slice; by default what is cheapest now.
        """
        derived = self.derived(stream) if derived is None else derived
        made, version = self._made.get(stream), self._version(stream)
        if made is None or (made.version, made.derived) != (version, tuple(derived)):
            parts = list(self._engine.streams[stream.lower()].slices.values())
            job = self._engine.job(stream, [parts[number] for number in derived])
            alive = [(part, list(part.members)) for part in parts]
            made = self._made[stream] = _Made(version, tuple(derived), job, alive)
        return made.job

    def holds(self, stream: str, job: Job) -> bool:
        """Whether workers who have begun this job know all queries and panes that there are now."""
        made = self._made.get(stream)
        return made is not None and made.job is job and made.version == self._version(stream)

    def derived(self, stream: str) -> list[int]:
        """The numbers of the slices that workers need not slice now."""
        chosen = set(self._engine.derived(stream))
        slices = self._engine.streams[stream.lower()].slices.values()
        return [number for number, part in enumerate(slices) if part in chosen]

    def _version(self, stream: str) -> object:
        """What the job of a stream depends on, beside the slices that are left out."""
        running, flows = self._engine.streams[stream.lower()], self._engine.flows
        panes = tuple(
            (id(part), part.begin, part.group.grid, tuple(map(id, part.members)))
            for part in running.slices.values()
            if part.group is not None
        )
        kept = [None if one is None else one.sql("cql") for one in flows.kept_rows(stream)]
        return panes, running.numbering is not None, flows.kept_columns(running.stream), kept
