"""ORDER BY and LIMIT of answers that come whenever they change."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.testing import Reference, assert_same


@pytest.mark.parametrize(
    "text",
    [
        "RSTREAM(SELECT b FROM s [RANGE 3] ORDER BY b LIMIT 1)",
        "RSTREAM(SELECT b FROM s [RANGE 3] ORDER BY a DESC)",
        "RSTREAM(SELECT b FROM s [RANGE 3] ORDER BY a DESC LIMIT 2 OFFSET 1)",
        "RSTREAM_RESTORE(SELECT b FROM s [RANGE 3 SLIDE 2] ORDER BY a LIMIT 1)",
    ],
)
def test_only_what_is_shown_changes_an_answer(text: str) -> None:
    db = windrow.connect()
    db.execute("CREATE STREAM s (t BIGINT, a BIGINT, b BIGINT) TIME t")
    query = db.query(text)
    tuples = pa.table({"t": [0, 1, 1, 2, 3, 3, 7], "a": [5, 1, 4, 9, 2, 3, 1], "b": [1, 1, 2, 1, 1, 2, 3]})
    db.push("s", tuples)
    db.finish()
    assert query.answers().num_rows
    assert_same(query.answers(), Reference(query.bound, {"s": tuples}).answers(), ordered="RESTORE" not in text)
