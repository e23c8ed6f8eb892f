"""The contract of every collection, in lock-step with recomputing from all values: adding one means adding a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.aggregates.collected import Question, Store
from windrow.aggregates.holistic import ranked
from windrow.synopses import frequencies, frequency_index
from windrow.synopses.collection import Collection, Windows
from windrow.synopses.collections import COLLECTIONS, collection
from windrow.synopses.snapshot import pack, unpack
from windrow.testing.sketches import hll_sketch, kll_sketch, theta_sketch

Check = Callable[[list[Any], Question], Any]
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "ints": (pa.int64(), st.integers(-3, 3) | st.sampled_from([2**40, -(2**40)])),
    "floats": (pa.float64(), st.sampled_from([0.0, 1.5, -2.25, 1e10, math.inf, -math.inf])),
    "strings": (pa.string(), st.text("abß", max_size=3)),
}


def position(values: list[Any], at: int) -> Any:
    return sorted(values)[at - 1]


def exact(values: list[Any], ask: Question) -> Any:
    """The answer of one window and group, from all its values."""
    match ask.name:
        case "count_distinct":
            return len(set(values))
        case "sketch":
            return hll_sketch(values, ask.parameters[0]) if ask.parameters else theta_sketch(values, 4)
        case "kll_sketch":
            return kll_sketch(values, ask.parameters[0])
        case _ if not values:
            return None
        case "sum_distinct":
            return sum(set(values))
        case "quantile":
            return position(values, max(1, math.floor(ask.parameters[0] * len(values))))
        case "percentile_disc":
            at = max(1, math.ceil(ask.parameters[0] * len(values) - 1e-9))
            return position(values, len(values) + 1 - at if ask.parameters[1] else at)
        case "percentile_cont":
            place = (len(values) - 1) * ask.parameters[0]
            low, high = position(values, math.floor(place) + 1), position(values, math.ceil(place) + 1)
            part = place - math.floor(place)
            return float(low) if low == high or part == 0 else low * (1 - part) + high * part
    best = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    if ask.name == "counters":
        return {"counters": [{"value": value, "count": count} for value, count in best], "lost": 0}
    if ask.name == "mode":
        return best[0][0]
    assert ask.name in ("top_k", "frequent")
    most = ask.parameters[0] if ask.parameters else None  # so many lists have no kth value: all are frequent
    return [{"value": value, "count": count} for value, count in best[:most]]


def frequency_questions(kind: pa.DataType) -> list[Question]:
    questions = [
        Question("count_distinct", pa.int64()),
        *(Question("quantile", kind, (fraction,)) for fraction in (0.0, 0.3, 1.0)),
        *(Question("percentile_disc", kind, (0.25, descending)) for descending in (False, True)),
        Question("mode", kind),
        *(Question("top_k", ranked(kind), (many,)) for many in (1, 3, 1_000_000)),
    ]
    if not pa.types.is_string(kind):
        questions += [Question("sum_distinct", kind), Question("percentile_cont", pa.float64(), (0.5, False))]
    return questions


def hll_sketches() -> list[Question]:
    return [Question("sketch", pa.binary(), (lg_k,)) for lg_k in (4, 12)]


def rank_questions(kind: pa.DataType) -> list[Question]:
    questions = [ask for ask in frequency_questions(kind) if ask.name in ("quantile", "percentile_cont")]
    return questions + [Question("kll_sketch", pa.binary(), (k,)) for k in (8, 200) if not pa.types.is_string(kind)]


def counter_questions(kind: pa.DataType) -> list[Question]:
    kept = pa.struct([("counters", ranked(kind)), ("lost", pa.int64())])
    return [*(Question("top_k", ranked(kind), (many,)) for many in (1, 3)), Question("counters", kept)]


# By collection: the questions it is asked about values of a type, and what the answer must be.
ASKED: dict[str, tuple[Callable[[pa.DataType], list[Question]], Check]] = {
    "frequencies": (frequency_questions, exact),
    "frequent": (lambda kind: [Question("frequent", ranked(kind))], exact),
    "hll": (lambda _: [Question("count_distinct", pa.int64()), *hll_sketches()], exact),
    "theta": (lambda _: [Question("sketch", pa.binary())], exact),
    "quantile_sketch": (rank_questions, exact),
    "frequent_items_sketch": (counter_questions, exact),
}
# Sizes at which nothing is lost; `test_sketches` has others. A theta sketch has no order to lose.
PARAMETERS: dict[str, tuple[int, ...]] = {
    "frequent": (1000, 1, 0, 0),
    "theta": (4,),
    "quantile_sketch": (512,),
    "frequent_items_sketch": (1024,),
}


SHORT = ("count_distinct", "quantile", "top_k", "sketch", "kll_sketch", "counters")


def test_every_collection_is_tested() -> None:
    assert set(ASKED) == set(COLLECTIONS)


class Model:
    """All values, by open slot and by closed pane, and group."""

    def __init__(self) -> None:
        self.open: list[list[tuple[int, Any]]] = []
        self.closed: list[list[tuple[int, Any]]] = []

    def windows(self, groups: int) -> tuple[Windows, list[list[Any]]]:
        """All windows over the closed panes, with the groups that have values in them, and those values."""
        count = len(self.closed)
        pairs = [(a, b) for a in range(count + 1) for b in range(a, count + 1)]
        offsets, present, contents = [0], [], []
        for a, b in pairs:
            rows = [row for pane in self.closed[a:b] for row in pane]
            for group in sorted({group for group, _ in rows}):
                present.append(group)
                contents.append([value for one, value in rows if one == group])
            offsets.append(len(present))
        first, last = np.array(pairs, np.int64).T
        return (
            Windows(first, last, np.array(offsets), np.array(present, np.int32), groups, np.arange(count)),
            contents,
        )


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-12) or (math.isnan(found) and math.isnan(wanted))
    return bool(found == wanted)


def check(kept: Collection, model: Model, groups: int, name: str, kind: pa.DataType, data: st.DataObject) -> None:
    """Every question, about all windows in one lookup and about one window alone."""
    questions, compute = ASKED[name]
    whole, contents = model.windows(groups)
    for ask in questions(kind):
        wanted = [compute(values, ask) for values in contents]
        answers = kept.lookup(whole, ask)
        assert answers.type == ask.type
        assert all(map(same, answers.to_pylist(), wanted)), (ask, answers.to_pylist(), wanted)
        one = data.draw(st.integers(0, len(whole.first) - 1))
        rows = slice(int(whole.offsets[one]), int(whole.offsets[one + 1]))
        alone = Windows(
            whole.first[one : one + 1],
            whole.last[one : one + 1],
            np.array([0, rows.stop - rows.start]),
            whole.present[rows],
            groups,
            whole.edges,
        )
        assert all(map(same, kept.lookup(alone, ask).to_pylist(), wanted[rows]))


def restored(kept: Collection) -> Collection:
    copy = collection(kept.store)
    copy.restore(unpack(pack({}, kept.snapshot()))[1])
    assert pack({}, copy.snapshot()) == pack({}, kept.snapshot())
    return copy


@pytest.mark.parametrize("patience", [0, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COLLECTIONS)
@given(data=st.data())
def test_lock_step_with_recomputing(name: str, kind: str, patience: int, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frequency_index, "PATIENCE", patience)
        patch.setattr(frequency_index, "MOVE", 10**6 if patience == 0 else 8)
        patch.setattr(frequencies, "MANY_ROWS", 4)
        store = Store(name, arrow, PARAMETERS.get(name, ()))
        kept, model, groups = collection(store), Model(), 3
        before = data.draw(st.integers(0, 2))
        kept.fill(before)
        model.closed = [[] for _ in range(before)]
        for _ in range(data.draw(st.integers(1, 5))):
            model.open += [[] for _ in range(data.draw(st.integers(0, 3)))]
            for absorbed in (False, True):
                rows = st.tuples(st.integers(0, len(model.open) - 1), st.integers(0, groups - 1), values)
                batch = data.draw(st.lists(rows, max_size=8)) if model.open else []
                for slot, group, value in batch:
                    model.open[slot].append((group, value))
                add(kept, batch, arrow, absorbed=absorbed)
            order = data.draw(st.permutations(range(len(model.open))))
            many = data.draw(st.integers(0, len(order)))
            kept.close(np.array(order[:many], np.int64), np.array(order[many:], np.int64))
            model.closed += [model.open[slot] for slot in order[:many]]
            model.open = [model.open[slot] for slot in order[many:]]
            check(kept, model, groups, name, arrow, data)
            gone = data.draw(st.integers(0, len(model.closed)))
            kept.expire(gone)
            model.closed = model.closed[gone:]
            live = sorted({group for pane in (*model.closed, *model.open) for group, _ in pane})
            if live and data.draw(st.booleans()):
                kept.select(np.array(live))
                number = {old: new for new, old in enumerate(live)}
                for panes in (model.closed, model.open):
                    panes[:] = [[(number[group], value) for group, value in pane] for pane in panes]
            if data.draw(st.booleans()):
                kept = restored(kept)
            check(kept, model, groups, name, arrow, data)


def add(kept: Collection, batch: list[tuple[int, int, Any]], kind: pa.DataType, *, absorbed: bool) -> None:
    """Rows as they are, or through another collection of the same kind."""
    slots, gids = (np.array([row[k] for row in batch], np.int32) for k in range(2))
    values = pa.array([row[2] for row in batch], kind)
    if not absorbed:
        kept.insert(slots, gids, values)
        return
    elsewhere = collection(kept.store)
    elsewhere.insert(slots, gids, values)
    cells = sorted({(slot, group) for slot, group, _ in batch}, reverse=True)
    slots, gids = (np.array([cell[k] for cell in cells], np.int64) for k in range(2))
    kept.absorb(slots.astype(np.int32), gids.astype(np.int32), elsewhere.partials(slots, gids))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COLLECTIONS)
def test_space_is_bounded_when_panes_expire(name: str, kind: str) -> None:
    """Every pane brings new values; the index is in use all the time."""
    arrow, _ = KINDS[kind]
    kept, sizes = collection(Store(name, arrow, PARAMETERS.get(name, ()))), []
    questions = [ask for ask in ASKED[name][0](arrow) if ask.name in SHORT]
    for step in range(600):
        values = pa.array([f"{step}.{i}" if kind == "strings" else step + i for i in range(20)], arrow)
        kept.insert(np.zeros(20, np.int32), np.arange(20, dtype=np.int32) % 2, values)
        kept.close(np.zeros(1, np.int64), np.zeros(0, np.int64))
        panes = min(step + 1, 50)
        present = np.arange(2, dtype=np.int32)
        one = Windows(np.zeros(1, np.int64), np.array([panes]), np.array([0, 2]), present, 2, np.arange(panes))
        for ask in questions:
            assert len(kept.lookup(one, ask)) == 2
        kept.expire(panes - 49 if panes == 50 else 0)
        sizes.append(kept.nbytes)
    assert max(sizes[300:]) <= 1.3 * max(sizes[100:300])
