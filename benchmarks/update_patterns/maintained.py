"""A query whose answer is maintained: its operators, and behind them the materialised result.

Nothing is put out: like in the thesis (3.6.1) the answer is kept up to date and can be looked at. What is measured is
processing, insertion and expiration. The optimizer is left out: plans are what their texts say.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from sqlglot import exp

import windrow
from windrow.expressions import Compiler
from windrow.flow.compile import FlowCompiler
from windrow.flow.leaves import BEGINNING
from windrow.flow.terms import term_of
from windrow.flow.view import View
from windrow.kernels.jit import Ints
from windrow.language.binder import bind
from windrow.language.catalog import Catalog
from windrow.plan.build import build
from windrow.state.choice import Strategy
from windrow.state.rows import Epoch


class Maintained:
    """One query under one strategy; `step` hands it tuples and moves time. `keep` the answer, or not."""

    def __init__(self, text: str, catalog: Catalog, strategy: Strategy, *, keep: bool = True) -> None:
        bound = bind(text, catalog)
        compiler = Compiler()
        named = {column.name.lower() for column in bound.ast.find_all(exp.Column)}
        compiled = FlowCompiler(
            compiler,
            lambda call, resolve: term_of(compiler, call, resolve),
            strategy=strategy,
            needed=lambda source: [one.name for one in source.columns if one.name.lower() in named],
        )
        edge, _, _ = compiled.root(build(bound).input, complete=False)
        self._node = edge.node
        self._leaves = [(one.source.name.lower(), one.columns, one.leaf) for one in compiled.inputs]
        self.graph = compiled.graph
        self.view = View(edge, strategy)
        self._keep = keep
        self._upto = BEGINNING
        self.came = 0
        """Rows that came to the answer."""
        self.cut = 0
        """Negative tuples among its changes."""

    @property
    def streams(self) -> set[str]:
        """What it reads."""
        return {stream for stream, _, _ in self._leaves}

    def step(self, tuples: Mapping[str, tuple[pa.RecordBatch, Ints]], upto: int) -> None:
        """One epoch: these tuples come, and time moves to `upto`."""
        for stream, columns, leaf in self._leaves:
            batch, ts = tuples[stream]
            if len(ts):
                arrays = [batch.column(name) for name in columns]
                leaf.add(pa.RecordBatch.from_arrays(arrays, schema=leaf.schema), ts)
        epoch = Epoch(self._upto, upto)
        delta = self.graph.step(epoch)[self._node]
        self.came += len(delta.came)
        self.cut += len(delta.cut)
        if self._keep:
            self.view.add(delta)
            self.view.settle(upto)
        self._upto = upto

    @property
    def rows(self) -> int:
        """Rows in the state of the operators; the answer is not counted, since every strategy has the same."""
        return self.graph.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the state of the operators."""
        return self.graph.nbytes

    def answer(self) -> tuple[int, int]:
        """The number of rows of the answer, and a checksum of them that does not depend on their order."""
        batch, _ = self.view.at(np.array([self._upto]))
        total = np.zeros(batch.num_rows, np.uint64)
        for place, column in enumerate(batch.columns):
            value = column.to_numpy(zero_copy_only=False).astype(np.uint64)
            total ^= (value + np.uint64(place + 1)) * np.uint64(0x9E3779B97F4A7C15 + 2 * place)
        return batch.num_rows, int(total.sum(dtype=np.uint64))


def catalog(columns: str, streams: Mapping[str, object]) -> Catalog:
    """A catalog with these streams, all with the same columns."""
    db = windrow.connect()
    for name in streams:
        db.execute(f"CREATE STREAM {name} {columns}")
    return db.catalog
