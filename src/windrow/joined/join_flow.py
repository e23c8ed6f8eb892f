"""The join that queries share, as a flow of its own: results come out as they come, whenever they will end."""

from __future__ import annotations

import pyarrow as pa

from windrow.flow.emission import Stamped
from windrow.flow.flow import Flow
from windrow.flow.leaves import RangeLeaf
from windrow.flow.names import qualified
from windrow.kernels.jit import Ints
from windrow.operators.join import Join
from windrow.state.buffer import EXP, TS
from windrow.state.rows import Epoch
from windrow.windows.spec import RangeWindow


class JoinFlow(Flow):
    """A continuous join of two windows."""

    def _step(self, epoch: Epoch, due: Ints) -> list[Stamped]:
        self._begun = self._begun or (self._oldest is not None and self._oldest <= epoch.upto)
        came = self.graph.step(epoch)[self._root.node].came
        return [(came.batch, came.ts)] if len(came) else []

    def take_over(self, wider: JoinFlow) -> None:
        """Become the same join with shorter windows: tuples that are too old for them go. O(tuples held)."""
        meta, tables = wider.snapshot()
        for number, operator in enumerate(self.graph.operators):
            if isinstance(operator, Join):
                for name in [name for name in tables if name.startswith(f"graph.{number}.")]:
                    tables[name] = self._narrowed(tables[name], wider.upto)
            else:
                assert isinstance(operator, RangeLeaf) or not operator.rows, "only windows and the join hold tuples"
        self.restore(meta, tables)

    def _narrowed(self, held: pa.Table, upto: int) -> pa.Table:
        """The tuples of one input that its window still has."""
        for source in self.query.sources:
            names = {qualified(source.alias, column.name) for column in source.columns}
            if isinstance(source.window, RangeWindow) and held.column_names[0] in names:
                assert source.window.length is not None
                ends = held[TS].to_numpy() + source.window.length
                kept = held.set_column(held.column_names.index(EXP), EXP, pa.array(ends))
                return kept.filter(pa.array(ends > upto))
        raise AssertionError(f"no window has the column {held.column_names[0]}")
