"""Pattern and strategy choose the buffer, and EXPLAIN says which it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.plan.patterns import Pattern
from windrow.state.adaptive import Adaptive
from windrow.state.buffer import Buffer
from windrow.state.calendar import Calendar
from windrow.state.choice import Strategy, make_buffer
from windrow.state.fifo import Fifo
from windrow.state.hashed import Hashed
from windrow.state.listed import Listed


@pytest.mark.parametrize(
    "pattern, strategy, expected, text",
    [
        (Pattern.MON, "upa", Fifo, "FIFO queue"),
        (Pattern.WKS, "upa", Fifo, "FIFO queue"),
        (Pattern.WK, "upa", Calendar, "calendar queue"),
        (Pattern.STR, "upa", Adaptive, "hash of rows, ended by negative tuples"),
        (Pattern.MON, "nt", Fifo, "FIFO queue"),
        (Pattern.WKS, "nt", Hashed, "hash of rows, ended by negative tuples"),
        (Pattern.STR, "nt", Hashed, "hash of rows, ended by negative tuples"),
        (Pattern.MON, "direct", Fifo, "FIFO queue"),
        (Pattern.WK, "direct", Listed, "list, scanned for expired rows"),
        (Pattern.STR, "direct", Listed, "list, scanned for expired rows"),
    ],
)
def test_choice(pattern: Pattern, strategy: Strategy, expected: type[Buffer], text: str) -> None:
    buffer = make_buffer(pattern, strategy, pa.schema([("a", pa.int64())]), 1)
    assert type(buffer) is expected and buffer.indexes == 1
    assert buffer.describe() == text
