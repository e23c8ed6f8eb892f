"""Labels of strings have the order of the strings, whatever comes when, and are translated when a gap is full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.synopses.ranks import TextRanks
from windrow.synopses.snapshot import pack, unpack


class Kept:
    """Labels as a synopsis keeps them."""

    def __init__(self) -> None:
        self.ranks = TextRanks(pa.string())
        self.label_of: dict[str, int] = {}
        self.translations = 0

    def encode(self, values: list[str]) -> None:
        labels = self.ranks.encode(pa.array(values, pa.string()), self.translate)
        self.label_of |= dict(zip(values, labels.tolist(), strict=True))
        self.check()

    def translate(self, old: np.ndarray, new: np.ndarray) -> None:
        self.translations += 1
        to = dict(zip(old.tolist(), new.tolist(), strict=True))
        self.label_of = {value: to[label] for value, label in self.label_of.items()}

    def check(self) -> None:
        values = sorted(self.label_of, key=str.encode)
        labels = [self.label_of[value] for value in values]
        assert labels == sorted(set(labels))
        assert self.ranks.decode(np.array(labels, np.int64)).to_pylist() == values


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=8), max_size=5), st.data())
def test_lock_step_with_sorting(batches: list[list[str]], data: st.DataObject) -> None:
    kept = Kept()
    for batch in batches:
        kept.encode(batch)
        live = data.draw(st.sets(st.sampled_from(sorted(kept.label_of))))
        kept.label_of = {value: label for value, label in kept.label_of.items() if value in live}
        kept.ranks.compact(np.array(sorted(kept.label_of.values()), np.int64))
        assert len(kept.ranks) == len(live)
        kept.check()
        _, arrays = unpack(pack({}, kept.ranks.snapshot()))
        kept.ranks = TextRanks(pa.string())
        kept.ranks.restore(arrays)
        kept.check()


def test_a_full_gap_spreads_all_labels_anew() -> None:
    kept = Kept()
    kept.encode(["a", "b"])
    for n in range(200):
        # Always between the last two: each takes half of the gap that is left.
        kept.encode(["a" + "b" * n + "z"])
        kept.encode(["a" + "b" * (n + 1)])
    assert 0 < kept.translations < 30


def test_what_is_no_label_is_null() -> None:
    ranks = TextRanks(pa.string())
    assert ranks.decode(np.array([5])).to_pylist() == [None]
    label = ranks.encode(pa.array(["x"]), lambda old, new: None)
    assert ranks.decode(np.array([label[0], -(1 << 63), (1 << 63) - 1])).to_pylist() == ["x", None, None]
