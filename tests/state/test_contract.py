"""Every discipline does what a plain Python list does, call by call: adding one means adding a line here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.model import KEY, SCHEMA, WHOLE, Model, Values, rows_of
from windrow.errors import QueryError
from windrow.state import buffer as buffers
from windrow.state.adaptive import Adaptive
from windrow.state.buffer import Buffer, NoSuchRow
from windrow.state.calendar import Calendar
from windrow.state.chain import TooMany
from windrow.state.fifo import Fifo, OutOfOrder
from windrow.state.hashed import Hashed
from windrow.state.listed import Listed
from windrow.state.rows import NEVER

DISCIPLINES: list[type[Buffer]] = [Fifo, Calendar, Adaptive, Hashed, Listed]

VALUES = st.tuples(
    st.sampled_from([0, 1, 2, None]),
    st.sampled_from(["", "a", "añb", None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([(), (1, 2), None]),
)
PLAIN: Values = (1, "a", True, (1,))


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("spare", [0, 4096], ids=["compacting", "sparse"])
@given(data=st.data())
def test_lock_step_with_a_list(discipline: type[Buffer], spare: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "SPARE", spare)
        run(discipline, data)


def run(discipline: type[Buffer], data: st.DataObject) -> None:
    model = Model(discipline(SCHEMA, 2))
    since = data.draw(st.sampled_from([-1000, 0, 1 << 50]))
    lifetimes = st.sampled_from([1, 2, 7, 30, 1 << 40, NEVER]) | st.integers(1, 100)
    constant = data.draw(lifetimes)
    for _ in range(data.draw(st.integers(1, 12))):
        upto = since + data.draw(st.sampled_from([1, 2, 10, 300]))

        def insert(since: int = since, upto: int = upto) -> None:
            values = data.draw(st.lists(VALUES | st.just(PLAIN), max_size=12))
            count = len(values)
            ts = sorted(data.draw(st.lists(st.integers(since + 1, upto), min_size=count, max_size=count)))
            if discipline is Fifo:
                lives = [constant] * count
            else:
                lives = data.draw(st.lists(lifetimes, min_size=count, max_size=count))
            model.insert(values, ts, [NEVER if life == NEVER else t + life for t, life in zip(ts, lives, strict=True)])

        def cut(since: int = since, upto: int = upto) -> None:
            # Rows of earlier epochs, at an instant of this one before their end.
            able = [slot for slot, row in model.rows.items() if row.ts <= since and row.exp == row.was > since + 1]
            victims = data.draw(st.lists(st.sampled_from(able), unique=True)) if able else []
            model.cut(
                victims, [data.draw(st.integers(since + 1, min(upto, model.rows[slot].exp - 1))) for slot in victims]
            )

        def probe() -> None:
            model.probe(data.draw(st.lists(st.integers(0, 3), max_size=6)))

        for call in data.draw(st.permutations([insert, cut, probe, probe])):
            call()
        if data.draw(st.integers(0, 3)):  # else the owner expires rows lazily: some ends, cut or not, wait
            if data.draw(st.booleans()):
                model.expire((since + upto) // 2)
            model.expire(upto)
            probe()
            model.expire(upto)
        model.settle()
        match data.draw(st.sampled_from(["go on"] * 4 + ["recode", "snapshot"])):
            case "recode":
                model.recode()
            case "snapshot":
                model.move(discipline(SCHEMA, 2))
        since = upto


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_two_equal_negative_tuples_end_two_rows(discipline: type[Buffer]) -> None:
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN] * 3, [1, 2, 3], [50] * 3)
    model.settle()
    model.insert([PLAIN] * 2, [6, 7], [50] * 2)
    model.cut([0, 0], [8, 8])
    assert sum(row.exp == 8 for slot, row in model.rows.items() if slot < 3) == 2  # not those of this epoch
    model.expire(10)
    model.settle()
    assert len(model.buffer) == 3


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_negative_tuple_may_end_a_row_of_the_same_epoch(discipline: type[Buffer]) -> None:
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN] * 2, [1, 4], [50] * 2)
    model.cut([0, 1], [3, 5])
    model.expire(6)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_cut_row_that_is_not_due_ends_later(discipline: type[Buffer]) -> None:
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN, PLAIN], [1, 2], [50, 50])
    model.settle()
    model.cut([0], [20])
    model.expire(10)
    model.settle()
    model.move(discipline(SCHEMA, 2))
    model.expire(19)
    model.expire(20)
    model.settle()
    assert len(model.buffer) == 1
    model.expire(60)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_cut_row_that_is_not_due_survives_a_compaction(
    discipline: type[Buffer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "SPARE", 0)
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN] * 8, range(8), [10] * 5 + [50] * 3)
    model.settle()
    model.cut([6], [20])
    model.expire(10)
    model.settle()
    assert sorted(model.rows) == [0, 1, 2]  # numbered anew
    model.expire(20)
    model.settle()
    assert len(model.buffer) == 2


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_probes_leave_dead_rows_out_at_every_place_of_a_chain(discipline: type[Buffer]) -> None:
    for dead in range(1, 1 << 5):
        model = Model(discipline(SCHEMA, 2))
        values: list[Values] = [(1, str(i), None, None) for i in range(5)]
        model.insert(values, [1] * 5, [50] * 5)
        model.settle()
        victims = [i for i in range(5) if dead >> i & 1]
        model.cut(victims, [2] * len(victims))
        model.expire(2)
        model.settle()
        for _ in range(3):
            model.probe([1, 1])


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("code, ts, exp", [(1, 5, 50), (0, 5, 51), (0, 1, 50)], ids=["code", "exp", "ts"])
def test_a_negative_tuple_without_a_row_is_an_error(discipline: type[Buffer], code: int, ts: int, exp: int) -> None:
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN], [1], [50])
    model.settle()
    with pytest.raises(NoSuchRow, match=rf"code {code} in index 1 that began before {ts} and was to end at {exp}"):
        model.buffer.cut(rows_of([PLAIN], [ts], [exp]), WHOLE, np.array([code], np.int32))


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_too_many_pairs_are_counted_not_made(discipline: type[Buffer]) -> None:
    model = Model(discipline(SCHEMA, 2))
    model.insert([PLAIN] * 1000, range(1000), [5000] * 1000)
    codes = np.zeros(3, np.int32)
    with pytest.raises(TooMany, match=r"at most 1500 pairs .* found 3000; join on more columns") as error:
        model.buffer.probe(KEY, codes, 1500)
    assert (error.value.count, error.value.limit) == (3000, 1500) and isinstance(error.value, QueryError)
    with pytest.raises(TooMany):
        model.buffer.probe(KEY, codes[:1], 0)
    which, _ = model.buffer.probe(KEY, codes, 3000)  # exactly the limit
    assert len(which) == 3000
    assert [len(part) for part in model.buffer.probe(KEY, codes[:0], 0)] == [0, 0]


@pytest.mark.parametrize("exps", [[9, 8], [7]], ids=["in a batch", "between batches"])
def test_a_fifo_queue_refuses_rows_that_end_out_of_order(exps: list[int]) -> None:
    buffer = Fifo(SCHEMA)
    buffer.insert(rows_of([PLAIN], [1], [8]))
    with pytest.raises(OutOfOrder, match=r"found an end at [78] after one at [89] in a FIFO queue"):
        buffer.insert(rows_of([PLAIN] * len(exps), [2] * len(exps), exps))
    assert len(buffer) == 1  # and nothing of the batch was taken in


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_an_empty_buffer(discipline: type[Buffer]) -> None:
    buffer = discipline(SCHEMA, 2)
    assert len(buffer) == 0 and not len(buffer.expire(5)) and buffer.settle() is None
    assert [len(part) for part in buffer.probe(KEY, np.array([0, 3], np.int32), 10)] == [0, 0]
    table = buffer.snapshot()
    assert table.column_names == [*SCHEMA.names, "__ts", "__exp"] and len(table) == 0
    buffer.restore(table, [np.empty(0, np.int32)] * 2)
    assert len(buffer.batch(buffer.scan())) == 0 and len(buffer) == 0
