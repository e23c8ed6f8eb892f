"""Time per 1,000 tuples and state, for every way to maintain a question and every length of the windows.

Windows are filled in a few large epochs, then come epochs of 1, 100, 1,000 and 10,000 tuples. What counts is the mean
over the epochs of one size, with all that happens now and then (compaction, growth), in processor seconds of the
process; of several turns the best counts.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from time import process_time

from benchmarks.update_patterns.maintained import Maintained
from benchmarks.update_patterns.queries import Question, Way
from benchmarks.update_patterns.trace import Trace
from windrow.language.catalog import Catalog

EPOCHS = {1: 200, 100: 60, 1000: 20, 10_000: 5}
"""From the tuples of an epoch to how many such epochs are measured."""
QUICK_EPOCHS = {1: 5, 100: 5, 1000: 2}
FILLS = 12
"""Epochs in which windows are filled."""


@dataclass
class Point:
    """One way, one length of the windows."""

    seconds: dict[int, float]
    """Per 1,000 tuples, by the tuples of an epoch."""
    rows: int = 0
    nbytes: int = 0
    answer: tuple[int, int] = (0, 0)
    premature: float = 0.0
    """Negative tuples per row that came to the answer; under upa the share of rows that end before their time."""


@dataclass
class Found:
    """What was measured for one question."""

    question: Question
    windows: list[int]
    epochs: list[int]
    points: dict[str, list[Point]] = field(default_factory=dict)
    """By way, in the order of the windows."""

    def ratio(self, way: str, other: str, window: int, epoch: int) -> float:
        """How many times the time of `other` a way takes; windows are counted as in a list."""
        mine, theirs = self.points[way][window], self.points[other][window]
        return mine.seconds[epoch] / theirs.seconds[epoch]


def measured(
    question: Question, trace: Trace, catalog: Catalog, windows: list[int], epochs: dict[int, int], turns: int
) -> Found:
    """All ways, all lengths; the answers of all ways must agree."""
    found = Found(question, windows, list(epochs), {way: [] for way in question.ways})
    for way in question.ways.values():
        once(way, trace, catalog, windows[0], dict.fromkeys(epochs, 2))  # compiles
    for window in windows:
        best: dict[str, Point] = {}
        for _ in range(turns):
            for name, way in question.ways.items():
                point = once(way, trace, catalog, window, epochs)
                if name in best:
                    point.seconds = {size: min(new, best[name].seconds[size]) for size, new in point.seconds.items()}
                best[name] = point
        answers = {name: point.answer for name, point in best.items()}
        assert len(set(answers.values())) == 1, f"{question.title}, windows of {window}: answers differ: {answers}"
        for name, point in best.items():
            found.points[name].append(point)
    return found


def once(way: Way, trace: Trace, catalog: Catalog, window: int, epochs: dict[int, int]) -> Point:
    """Fill the windows, then measure."""
    text, strategy = way
    query = Maintained(text.replace("{w}", str(window)), catalog, strategy)
    own = Trace({name: tuples for name, tuples in trace.links.items() if name in query.streams})
    end = 0
    for step in range(1, FILLS + 1):
        upto = window * step // FILLS
        query.step(own.between(end, upto), upto)
        end = upto
    point, came, cut = Point({}), query.came, query.cut
    for size, count in epochs.items():
        tuples, spent = 0, 0.0
        gc.collect()
        for number, (given, upto) in enumerate(own.cuts(end, size)):
            if number == count:
                break
            part = own.between(end, upto)
            began = process_time()
            query.step(part, upto)
            spent += process_time() - began
            tuples += given
            end = upto
        if not tuples:
            raise ValueError(f"the trace ends at {trace.last}: too short for windows of {window} and epochs of {size}")
        point.seconds[size] = spent / tuples * 1000
    point.rows, point.nbytes, point.answer = query.rows, query.nbytes, query.answer()
    point.premature = (query.cut - cut) / max(query.came - came, 1)
    return point


def ticks_needed(window: int, epochs: dict[int, int]) -> int:
    """Ticks of a trace with one tuple per tick, for a query that reads one link."""
    return window + sum(size * count for size, count in epochs.items()) + max(epochs)
