"""A bound query: every name resolved, every expression typed, every window in ticks."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from windrow.language.catalog import Column, Relation, Stream
from windrow.language.hints import Hint, Priority
from windrow.language.positions import Position
from windrow.windows.spec import Window

SOURCE_ID = "source"
"""Key in a node's meta: which `Source` of the bound query a FROM item is."""


@dataclass(frozen=True)
class Source:
    """One item of a FROM clause: a windowed stream, a relation, or the windowed output of a subquery."""

    id: int
    alias: str
    columns: tuple[Column, ...]
    stream: Stream | None = None
    relation: Relation | None = None
    subquery: BoundQuery | None = None
    window: Window | None = None
    place: Position | tuple[None, None] = field(default=(None, None), compare=False)
    """Line and column in the text."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        named = self.stream or self.relation
        return named.name if named else f"({self.alias})"


@dataclass(frozen=True)
class BoundQuery:
    """What the binder makes of a query; `ast` is a qualified and typed SELECT or set operation.

    In `ast` every stream stands as nodes.Windowed and every relation as exp.Table, both with meta[SOURCE_ID]
    pointing into `sources` (those of nested subqueries included).
    """

    text: str
    ast: exp.Expr
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]
    timestamps: bool
    slide: int | None = None
    rows_slide: int | None = None
    operator: str | None = None
    output_window: Window | None = None
    hint: Hint | None = None
    priority: Priority | None = None

    @property
    def periodic(self) -> bool:
        """A complete answer at each due time (SLIDE), rather than a stream of changes."""
        return self.slide is not None or self.rows_slide is not None

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The distinct streams that the query reads, also through windowed subqueries."""
        found: dict[str, Stream] = {}
        for source in self.sources:
            if source.stream is not None:
                found.setdefault(source.stream.name.lower(), source.stream)
            if source.subquery is not None:
                found.update({stream.name.lower(): stream for stream in source.subquery.streams})
        return tuple(found.values())

    @property
    def internal(self) -> bool:
        """All windows are INTERNAL: results are appended and never taken back (thesis 3.3.2)."""
        windows = [source.window for source in self.sources if source.window is not None]
        return bool(windows) and all(window.internal for window in windows)
