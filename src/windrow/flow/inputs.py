"""What a query reads: the leaves of its windows and relations, and how long their tuples may come late."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.errors import UnsupportedError
from windrow.flow.conditions import STAMP
from windrow.flow.graph import Edge
from windrow.flow.leaves import Leaf, RangeLeaf, RelationLeaf
from windrow.flow.names import qualified
from windrow.flow.rows_leaf import RowsLeaf
from windrow.flow.steps import Steps
from windrow.kernels.jit import Ints
from windrow.language import types
from windrow.language.bound import Source
from windrow.operators.nrr_join import NrrJoin
from windrow.plan.patterns import Pattern
from windrow.windows.spec import RangeWindow, RowsWindow


@dataclass(eq=False)
class Input:
    """A leaf, and the source whose tuples it wants."""

    source: Source
    leaf: Leaf
    columns: tuple[str, ...]
    """The columns of the source, in the order of the leaf's schema."""
    stamped: bool = False
    """Whether the timestamp comes behind them."""

    def add(self, batch: pa.RecordBatch, ts: Ints) -> None:
        """Tuples of the source, with its columns in any order."""
        columns = [batch.column(name) for name in self.columns]
        if self.stamped:
            columns.append(pa.array(ts))
        pairs = zip(columns, self.leaf.schema, strict=True)
        # int32 comes where BIGINT is declared
        arrays = [array if array.type == field.type else array.cast(field.type) for array, field in pairs]
        self.leaf.add(pa.RecordBatch.from_arrays(arrays, schema=self.leaf.schema), ts)


class Inputs:
    """The leaves of one query. `slide` rounds lifetimes to due times."""

    def __init__(
        self,
        steps: Steps,
        slide: int | None,
        needed: Callable[[Source], Iterable[str]],
        stamped: Callable[[Source], bool],
    ) -> None:
        self._steps = steps
        self._slide = slide
        self._needed = needed
        self._stamped = stamped
        self.windows: list[Input] = []
        self.relations: list[tuple[Source, RelationLeaf | NrrJoin]] = []

    def window(self, source: Source) -> Edge:
        """The lifetimes of tuples in a window."""
        window = source.window
        assert window is not None
        kinds = {column.name: types.to_arrow(column.type) for column in source.columns}
        rows = isinstance(window, RowsWindow)
        names = tuple(kinds) if rows else tuple(name for name in kinds if name in set(self._needed(source)))
        names = names or tuple(kinds)[:1]  # a row must have a column
        fields = [pa.field(qualified(source.alias, name), kinds[name]) for name in names]
        stamped = self._stamped(source)
        if stamped:
            fields.append(pa.field(qualified(source.alias, STAMP), pa.int64()))
        schema = pa.schema(fields)
        leaf: Leaf
        if isinstance(window, RowsWindow):
            sequence = source.stream.sequence if source.stream is not None else None
            by = tuple(qualified(source.alias, name) for name in window.partition_by)
            named = None if sequence is None else qualified(source.alias, sequence)
            leaf = RowsLeaf(window, schema, by, named)
            pattern, lifetime = Pattern.STR, None
        else:
            negative = self._steps.strategy == "nt"
            leaf = RangeLeaf(window, schema, slide=self._slide, negative=negative)
            lifetime = leaf.lifetime
            pattern = Pattern.MON if lifetime is None else Pattern.STR if negative else Pattern.WKS
        self.windows.append(Input(source, leaf, names, stamped))
        return self._steps.graph.add(leaf, (), pattern, lifetime)

    def relation(self, source: Source) -> Edge:
        """The rows of a retroactive relation."""
        if source.relation is not None and source.relation.non_retroactive:
            raise UnsupportedError(
                f"{source.name} is non-retroactive: it can only be in an inner join with a stream that stands in "
                "the same FROM",
                line=source.place[0],
                column=source.place[1],
            )
        leaf = RelationLeaf(schema_of(source), slide=self._slide)
        self.relations.append((source, leaf))
        return self._steps.graph.add(leaf, (), Pattern.STR)

    def reaches(self) -> dict[str, int]:
        """How long tuples stay in the windows that are not INTERNAL, by the column with their timestamp."""
        found = {}
        for one in self.windows:
            window = one.source.window
            if one.stamped and window is not None and not window.internal:
                reach = window.reach if isinstance(window, RangeWindow) else 1
                assert reach is not None
                found[qualified(one.source.alias, STAMP)] = reach
        return found

    def waits(self, *, again: bool) -> int | None:
        """How long after its arrival a tuple of a RANGE window may come, or come `again`; None: without end."""
        windows = [one.source.window for one in self.windows]
        waits = [window.reach if again else window.offset for window in windows if isinstance(window, RangeWindow)]
        if None in waits:
            return None
        return max((one for one in waits if one is not None), default=0) + (self._slide or 0)

    def waiting(self, *, again: bool) -> Ints:
        """When the tuples of ROWS windows came that may come, or come `again`, once others have come."""
        found = [
            one.leaf.waiting(qualified(one.source.alias, STAMP), inside=again)
            for one in self.windows
            if one.stamped and isinstance(one.leaf, RowsLeaf)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])


def schema_of(source: Source) -> pa.Schema:
    """All columns of a relation, as edges call them."""
    return pa.schema([pa.field(qualified(source.alias, c.name), types.to_arrow(c.type)) for c in source.columns])
