"""The floor: a program that can do nothing but this benchmark, written by hand in NumPy.

It knows that ts is sorted, that there are exactly 10,000 packets per second, that panes are seconds, that keys are
dense small integers and that after a few seconds every group occurs in every window. It computes the same answer rows
as the engine does: _time, key and value as flat arrays per query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.many_queries.workload import KEYS, RATE, SECOND, Spec

WARM = 10
"""Windows that end before this second may lack a group; later ones hold all with certainty for this seed."""


def run(batches: Iterable[pa.RecordBatch], specs: Sequence[Spec]) -> tuple[int, float]:
    """All answers of all queries, batch by batch; gives the number of answer rows and the sum of their values."""
    _PREFIXES.clear()
    kinds = {spec.kind for spec in specs}
    panes: dict[str, NDArray[Any]] = {}  # per word, one row per second
    rows, checksum = 0, 0.0
    for batch in batches:
        for word, part in _panes(batch, kinds).items():
            panes[word] = part if word not in panes else np.concatenate([panes[word], part])
        done = len(next(iter(panes.values()))) if panes else 0
        before = done - len(batch) // RATE
        for spec in specs:
            # The first due time is at one slide, the first pane's upper edge is one second.
            ends = np.arange(before // spec.slide * spec.slide + spec.slide, done + 1, spec.slide)
            if len(ends):
                count, total = _answer(spec, panes, ends)
                rows += count
                checksum += total
    # The engine also answers at the first due time after the last tuple.
    for spec in specs:
        if done % spec.slide:
            count, total = _answer(spec, panes, np.array([-(-done // spec.slide) * spec.slide]))
            rows += count
            checksum += total
    return rows, checksum


def _panes(batch: pa.RecordBatch, kinds: set[str]) -> dict[str, NDArray[Any]]:
    seconds = len(batch) // RATE
    length = batch.column("length").to_numpy()
    words: dict[str, NDArray[Any]] = {}
    if "sum" in kinds:
        words["sum"] = length.reshape(seconds, RATE).sum(axis=1, dtype=np.int64)
    for kind in kinds - {"sum"}:
        name, groups = KEYS[kind]
        cells = batch.column(name).to_numpy() + np.repeat(np.arange(seconds, dtype=np.int32) * groups, RATE)
        if kind == "max":
            best = np.zeros(seconds * groups, np.int32)
            np.maximum.at(best, cells, length)
            words["max"] = best.reshape(seconds, groups)
        else:
            counts = np.bincount(cells, minlength=seconds * groups).reshape(seconds, groups)
            words[f"{kind}_count"] = counts
            if kind == "avg":
                sums = np.bincount(cells, weights=length, minlength=seconds * groups)
                words["avg_sum"] = sums.reshape(seconds, groups)
    return words


def _answer(spec: Spec, panes: dict[str, NDArray[Any]], ends: NDArray[np.int64]) -> tuple[int, float]:
    starts = np.maximum(ends - spec.range, 0)
    if spec.kind == "sum":
        prefix = _prefix(panes, "sum")
        last = len(prefix) - 1
        values = prefix[np.minimum(ends, last)] - prefix[np.minimum(starts, last)]
        time = ends * SECOND
        return len(time), float(values.sum())
    groups = KEYS[spec.kind][1]
    time = np.repeat(ends * SECOND, groups)
    keys = np.tile(np.arange(groups, dtype=np.int32), len(ends))
    present = None
    if spec.kind == "max":
        best = panes["max"]
        values = np.empty((len(ends), groups), np.int32)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            best[start:end].max(axis=0, out=values[row])
    else:
        counts = _prefix(panes, f"{spec.kind}_count")
        last = len(counts) - 1
        high, low = np.minimum(ends, last), np.minimum(starts, last)
        values = counts[high] - counts[low]
        if ends[0] < WARM:
            present = values.ravel() > 0
        if spec.kind == "avg":
            sums = _prefix(panes, "avg_sum")
            values = (sums[high] - sums[low]) / np.maximum(values, 1)
    values = values.ravel()
    if present is not None and not present.all():
        time, keys, values = time[present], keys[present], values[present]
    assert len(time) == len(keys) == len(values)
    return len(time), float(values.sum(dtype=np.float64))


_PREFIXES: dict[str, NDArray[Any]] = {}


def _prefix(panes: dict[str, NDArray[Any]], word: str) -> NDArray[Any]:
    """Running sums with a zero row in front, made once per batch and shared by all queries."""
    known = _PREFIXES.get(word)
    rows = panes[word]
    if known is None or len(known) != len(rows) + 1:
        known = np.concatenate([np.zeros((1, *rows.shape[1:]), rows.dtype), np.cumsum(rows, axis=0)])
        _PREFIXES[word] = known
    return known
