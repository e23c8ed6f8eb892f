"""Which buffer holds the rows of a plan edge: its update pattern and the strategy decide (thesis 3.5.2)."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from windrow.plan.patterns import Pattern
from windrow.state.adaptive import Adaptive
from windrow.state.buffer import Buffer
from windrow.state.calendar import Calendar
from windrow.state.fifo import Fifo
from windrow.state.hashed import Hashed
from windrow.state.listed import Listed

Strategy = Literal["upa", "nt", "direct"]

BUFFERS: dict[Strategy, dict[Pattern, type[Buffer]]] = {
    "upa": {Pattern.WKS: Fifo, Pattern.WK: Calendar, Pattern.STR: Adaptive},
    "nt": {Pattern.WKS: Hashed, Pattern.WK: Hashed, Pattern.STR: Hashed},
    "direct": {Pattern.WKS: Listed, Pattern.WK: Listed, Pattern.STR: Listed},
}


def make_buffer(pattern: Pattern, strategy: Strategy, schema: pa.Schema, indexes: int = 0) -> Buffer:
    """An empty buffer for rows that end as `pattern` says; rows of a MON edge only queue up, in every strategy."""
    if pattern is Pattern.MON:
        return Fifo(schema, indexes)
    return BUFFERS[strategy][pattern](schema, indexes)
