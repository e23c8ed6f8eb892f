"""MIN and MAX of strings: every distinct value gets an int64 label of the same order, with gaps for later values.

New values are placed in the gap between their neighbours; when a gap is full all labels are spread anew, and the
stored ones are translated (which keeps their order, so it commutes with MIN and MAX). A batch with new values costs
O(distinct log distinct), one without O(bytes). Space is the bytes of the distinct values in the panes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.jit import Ints
from windrow.synopses.text_codes import TextEncoder

FIRST, LAST = -(1 << 61), 1 << 61  # so that their difference is an int64


class TextRanks:
    """Strings <-> labels of the same order (bytes of UTF-8, as DuckDB compares them)."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._encoder = TextEncoder(kind)
        # In order of value: the labels, and the codes of the encoder.
        self._labels: Ints = np.empty(0, np.int64)
        self._codes: Ints = np.empty(0, np.int64)
        self._label_of: Ints = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._encoder.nbytes + int(self._labels.nbytes + self._codes.nbytes + self._label_of.nbytes)

    def encode(self, values: pa.Array, translate: Callable[[Ints, Ints], None]) -> Ints:
        """The labels of values without NULLs; `translate(old, new)` is called when stored labels change."""
        codes = self._encoder.encode(values)
        if len(self._encoder) > len(self._labels):
            self._place(translate)
        return np.asarray(self._label_of[codes])

    def decode(self, labels: Any) -> pa.Array:
        """The values behind labels; NULL for what is no label."""
        if not len(self._labels):
            return self._encoder.decode(np.empty(0, np.int64)).take(pa.nulls(len(labels), pa.int64()))
        place = np.minimum(np.searchsorted(self._labels, labels), len(self._labels) - 1)
        found = self._encoder.decode(self._codes[place])
        unknown = self._labels[place] != labels
        return pc.if_else(pa.array(unknown), pa.scalar(None, found.type), found) if unknown.any() else found

    def compact(self, live: Ints) -> None:
        """Keep the values of these labels (ascending, others are ignored); labels stay as they are."""
        kept = np.flatnonzero(np.isin(self._labels, live))
        codes = self._codes[kept]
        ascending = np.sort(codes)
        self._encoder.compact(ascending)
        self._adopt(self._labels[kept], np.searchsorted(ascending, codes))

    def snapshot(self) -> dict[str, Any]:
        """Named arrays."""
        return {"values": self._encoder.decode_plain(self._codes), "labels": self._labels}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Become what `snapshot` wrote."""
        values = arrays["values"]
        self._encoder.restore({"values": values, "null": np.empty(0, np.int64)})
        self._adopt(np.array(arrays["labels"]), np.arange(len(values)))

    def _adopt(self, labels: Ints, codes: Ints) -> None:
        self._labels, self._codes = labels, codes
        self._label_of = np.empty(len(labels), np.int64)
        self._label_of[codes] = labels

    def _place(self, translate: Callable[[Ints, Ints], None]) -> None:
        """Give labels to the codes that have none."""
        count, known = len(self._encoder), len(self._labels)
        codes = np.concatenate([self._codes, np.arange(known, count)])
        order = pc.sort_indices(self._encoder.decode_plain(codes)).to_numpy().astype(np.int64)
        old = order < known
        labels = _spread(self._labels, old)
        if labels is None:
            labels = FIRST + (np.arange(1, count + 1) * ((LAST - FIRST) // (count + 1)))
            if known:
                translate(self._labels, labels[old])
        self._adopt(labels, codes[order])


def _spread(known: Ints, old: Any) -> Ints | None:
    """Labels for all, given those of the old ones in order; None when some gap is too small."""
    labels = np.empty(len(old), np.int64)
    labels[old] = known
    # The old neighbours of each place, and how many new ones are between them.
    fence = np.concatenate([[FIRST], known, [LAST]])
    gap = np.cumsum(old)
    fresh = gap[~old]
    many = np.bincount(fresh, minlength=len(fence))
    nth = np.arange(len(fresh)) - np.concatenate([[0], np.cumsum(many)])[fresh] + 1
    step = (fence[fresh + 1] - fence[fresh]) // (many[fresh] + 1)
    if bool(np.any(step < 1)):
        return None
    labels[~old] = fence[fresh] + nth * step
    return labels
