"""The heap of deadlines is a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow.scheduling.deadlines import Deadlines

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 9), st.integers(0, 20), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 9), st.just(0), st.just(0)),
        st.tuples(st.just("take"), st.just(0), st.integers(0, 20), st.just(0)),
    ),
    max_size=300,
)


@given(STEPS)
def test_like_a_sorted_list(steps: list[tuple[str, int, int, int]]) -> None:
    heap: Deadlines[int] = Deadlines()
    kept: dict[int, tuple[int, int, int]] = {}
    for turn, (what, key, deadline, priority) in enumerate(steps):
        if what == "set":
            heap.set(key, deadline, priority)
            kept[key] = (deadline, -priority, turn)
        elif what == "remove":
            heap.remove(key)
            kept.pop(key, None)
        else:
            wanted = sorted((key for key in kept if kept[key][0] <= deadline), key=kept.__getitem__)
            assert heap.take(deadline) == wanted
            kept = {one: entry for one, entry in kept.items() if one not in wanted}
        assert len(heap) == len(kept)
        assert sorted(heap.before(10)) == sorted(key for key in kept if kept[key][0] < 10)
        first = min(kept, key=kept.__getitem__, default=None)
        assert heap.lowest() == (None if first is None else (kept[first][0], -kept[first][1], first))


def test_replaced_entries_do_not_pile_up() -> None:
    heap: Deadlines[str] = Deadlines()
    for deadline in range(10_000, 0, -1):
        heap.set("a", deadline)
    assert len(heap._heap) < 100
    assert heap.take(1) == ["a"]
