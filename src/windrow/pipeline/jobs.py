"""The jobs of a run: what workers must do for each stream, made anew only when its queries or panes have changed."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.engine import Engine
from windrow.job import Job


class Jobs:
    """The newest job of each stream of an engine; the same object as long as it holds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made: dict[str, tuple[object, Job]] = {}
        """With what it was made from."""

    def of(self, stream: str, derived: Sequence[int] | None = None) -> Job:
        """What workers must do for this stream.

        `derived` are the numbers of the slices that are derived from others; by default what is cheapest now.
        """
        running = self._engine.streams[stream.lower()]
        if derived is None:
            derived = self.derived(stream)
        panes = tuple(
            (id(part), part.begin, part.group.grid, tuple(map(id, part.members)))
            for part in running.slices.values()
            if part.group is not None
        )
        kept = [None if one is None else one.sql("cql") for one in self._engine.flows.kept_rows(stream)]
        columns = self._engine.flows.kept_columns(running.stream)
        version = panes, tuple(derived), running.numbering is not None, columns, kept
        known = self._made.get(stream)
        if known is None or known[0] != version:
            parts = list(running.slices.values())
            known = self._made[stream] = version, self._engine.job(stream, [parts[number] for number in derived])
        return known[1]

    def derived(self, stream: str) -> list[int]:
        """The numbers of the slices that workers need not slice now."""
        chosen = set(self._engine.derived(stream))
        slices = self._engine.streams[stream.lower()].slices.values()
        return [number for number, part in enumerate(slices) if part in chosen]
