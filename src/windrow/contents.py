"""Answers from tuples themselves, where no panes fit: a slice of its own for them, filled, looked up and thrown away.

Cost: one pass over the tuples of the windows. It is the same code that fills panes, so every aggregate works.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.answering import looked_up
from windrow.expressions import Context
from windrow.operators.answer import AnswerRows
from windrow.sharing.member import Member
from windrow.sharing.slice import Slice
from windrow.windows.grid import Grid
from windrow.windows.spec import BEGINNING, MAX_TICK, RangeWindow

EACH = Grid(((1, 0),))
"""Every number is a pane of its own."""


def contents_slice(
    like: Slice, member: Member, rows: pa.Table, numbers: NDArray[np.int64], grid: Grid = EACH
) -> tuple[Slice, Member]:
    """A slice of these tuples, placed by their numbers, with the predicate, grouping and aggregates of a query."""
    part = Slice(like.predicate, like.keys, like.synopsis)
    alone = Member(RangeWindow(1, 1), 1, member.terms)
    part.add(alone, None)
    part.pin(grid, BEGINNING)
    if rows.num_rows:
        failed = part.insert(Context.of(rows.combine_chunks()), numbers, {})
        if failed:
            raise failed[alone]
    part.close(MAX_TICK)
    return part, alone


def answered(
    part: Slice,
    member: Member,
    rows: AnswerRows,
    windows: tuple[NDArray[np.int64], NDArray[np.int64]],
    times: NDArray[np.int64],
) -> pa.RecordBatch:
    """The answer rows of the windows (start, end], each with its time."""
    found, columns = looked_up(part, member, *windows)
    time = pa.array(np.repeat(times, np.diff(found.offsets))).view(rows.schema.field(0).type)
    return rows.rows(time, found.offsets, columns)
