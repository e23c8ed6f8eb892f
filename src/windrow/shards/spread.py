"""How the rows of a plan edge are spread over shards, for every way to deal the tuples below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from windrow.flow.names import qualified
from windrow.language.scope import OUTER
from windrow.shards.alike import alike

MOST = 256
"""So many ways to deal are looked at; more come only from unions of wide streams, where one is as good as another."""


class StaysTogetherError(Exception):
    """No way to deal the tuples gives the answers of one place; the message says why."""


@dataclass(frozen=True)
class Way:
    """A way to deal: the column of each stream (by lower-case name) whose hash names the shard of a tuple.

    `places` are the columns of the edge that hold this very value in each of its rows. All of them are equal.
    """

    columns: Mapping[str, str]
    places: frozenset[int] = frozenset()

    def with_(self, other: Way) -> dict[str, str] | None:
        """The columns of both; None if they deal a stream differently."""
        both = {**other.columns, **self.columns}
        return None if any(both[name] != column for name, column in other.columns.items()) else both


@dataclass(frozen=True)
class Spread:
    """The columns of an edge and the ways to deal; None: no stream is below it, every shard has all its rows.

    With each of the ways every row is in exactly one shard: together they are the rows of one place.
    """

    names: tuple[str, ...]
    types: tuple[exp.DataType | None, ...]
    ways: tuple[Way, ...] | None

    @property
    def whole(self) -> bool:
        """Whether every shard has all rows."""
        return self.ways is None

    def place(self, expression: exp.Expr, *, outer: bool = False) -> int | None:
        """The column that the expression copies; None if it is no plain column of this edge.

        Columns of an outer query say so, and are looked up only where that is the `outer` one.
        """
        column = bare(expression)
        if not isinstance(column, exp.Column) or bool(column.meta.get(OUTER)) != outer:
            return None
        if column.table:
            name = qualified(column.table, column.name)
            return self.names.index(name) if name in self.names else None
        ending = f".{column.name.lower()}"  # USING: that of the first FROM item that has it
        return next((place for place, name in enumerate(self.names) if name.endswith(ending)), None)

    def keeping(self, ways: Iterable[Way], why: str) -> Spread:
        """The same edge with these ways, one of each; refused if there are none."""
        unique: dict[tuple[tuple[tuple[str, str], ...], frozenset[int]], Way] = {}
        for way in ways:
            unique.setdefault((tuple(sorted(way.columns.items())), way.places), way)
            if len(unique) == MOST:
                break
        if not unique:
            raise StaysTogetherError(why)
        return replace(self, ways=tuple(unique.values()))

    def keyed(self, why: str) -> Spread:
        """With the ways for which equal rows are in one shard."""
        return self if self.ways is None else self.keeping((way for way in self.ways if way.places), why)


def bare(expression: exp.Expr) -> exp.Expr:
    """The expression without its alias and parentheses."""
    while isinstance(expression, (exp.Alias, exp.Paren)):
        expression = expression.this
    return expression


def pairs(left: Spread, right: Spread) -> Iterator[tuple[Way, Way, dict[str, str]]]:
    """The ways of both sides that deal alike the streams that both read."""
    for one in left.ways or ():
        for other in right.ways or ():
            columns = one.with_(other)
            if columns is not None:
                yield one, other, columns


class Ties:
    """Columns that are equal in every row that counts: sets that grow together."""

    def __init__(self, types: Sequence[exp.DataType | None]) -> None:
        self._kinds = [alike(one) for one in types]
        self._parent = list(range(len(types)))

    def tie(self, one: int | None, other: int | None) -> None:
        """Both are equal; nothing is learned of other types, or of what is no column."""
        if one is None or other is None or self._kinds[one] is None:
            return
        if self._kinds[one] == self._kinds[other]:
            self._parent[self.root(one)] = self.root(other)

    def root(self, place: int) -> int:
        """The same for all columns that are equal to this one."""
        while self._parent[place] != place:
            place = self._parent[place]
        return place

    def roots(self, places: Iterable[int]) -> frozenset[int]:
        """Those of some columns."""
        return frozenset(self.root(place) for place in places)

    def places(self, roots: frozenset[int]) -> frozenset[int]:
        """All columns that have one of these roots."""
        return frozenset(place for place in range(len(self._parent)) if self.root(place) in roots)
