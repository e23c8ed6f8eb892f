"""What an execution costs: measured with the library's synopses, or counted as in the thesis.

*Measured*: a share group with a basic interval synopsis of SUM(length) by key, filled with a whole window of random
packets. An execution looks up all its windows at once, then each query selects its ten largest keys or the median of
all. Seconds of many random executions are fitted to `ProbeCost`: start + combine · (longest window − 1) + post ·
queries + read · (all windows, one after the other).

*Counted*: the relative cost of thesis 8.4.4. Merging the frequency counters of one more interval costs one unit for
each key in it, and post-processing reads the counters of a window one after the other, `READ` units each: the longer
the window, the more of them. Nothing else costs anything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, prod
from time import thread_time

import numpy as np
import pyarrow as pa

from benchmarks.measure import Best
from benchmarks.scheduling.workload import GROUPS, LONGEST, SHORTEST, Rate
from windrow.aggregates.sums import SumInts
from windrow.scheduling.cost import ProbeCost
from windrow.scheduling.task import SubGroup
from windrow.synopses.share_group import ShareGroup
from windrow.synopses.spec import ComponentSpec
from windrow.windows.grid import Grid

LARGEST = 10
READ = 0.1
"""Reading a counter in order, against finding it in a hash table and adding to it.

A guess: the thesis does not say what it was. No value gives all that the thesis has seen; `post` shows several.
"""


@dataclass(frozen=True)
class Costs:
    """Seconds of one execution, by group, and of taking in one update of all synopses."""

    groups: dict[str, ProbeCost]
    update: float
    error: float
    """Mean relative error of the fit."""


class Kept:
    """The synopsis of one group of queries, with a whole window in it."""

    def __init__(self, columns: Sequence[str], rate: Rate, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        spec = ComponentSpec(SumInts(), 0, "basic_interval")
        self._group = ShareGroup([pa.int32()] * len(columns), [spec], Grid.of([(1, 0)]))
        self._now = LONGEST + 20
        spent = []
        for tick in range(1, self._now + 1):
            keys = [pa.array(rng.integers(0, rate.values[name], rate.tuples).astype(np.int32)) for name in columns]
            lengths = pa.array(rng.integers(40, 1500, rate.tuples))
            began = thread_time()
            self._group.insert(np.full(rate.tuples, tick), keys, [lengths])
            self._group.close(tick)
            self._group.expire(tick - LONGEST)
            spent.append(thread_time() - began)
        self.update = float(np.median(spent[LONGEST:]))

    def execute(self, windows: Sequence[int]) -> float:
        """Queries over these windows together: ten largest keys, median, ten largest keys, …"""
        lengths = sorted(set(windows), reverse=True)  # a sparse layout slides forward only, and else starts over
        found = self._group.lookup([self._now - one for one in lengths], [self._now] * len(lengths), [0])
        bytes_of = found.words[0][0]
        place = {length: i for i, length in enumerate(lengths)}
        total = 0.0
        for query, window in enumerate(windows):
            part = bytes_of[found.offsets[place[window]] : found.offsets[place[window] + 1]]
            if query % 2:
                total += float(np.partition(part, len(part) // 2)[len(part) // 2])
            else:
                total += float(np.partition(part, -LARGEST)[-LARGEST:].sum())
        return total


def measured(rate: Rate, quick: bool) -> Costs:
    """All groups, one after the other."""
    groups, update, errors = {}, 0.0, []
    for name, columns in GROUPS.items():
        kept = Kept(columns, rate)
        rng = random.Random(name)
        runs = [
            [rng.randint(SHORTEST, LONGEST) for _ in range(queries)]
            for queries in (1, 2, 5, 20)
            for _ in range(2 if quick else 4)
        ]
        runs += [[SHORTEST], [LONGEST]]
        work: dict[str, Callable[[], object]] = {str(i): _executed(kept, run) for i, run in enumerate(runs)}
        best = Best()
        best.turns(work, 2 if quick else 5)
        seconds = [best.seconds[str(i)] for i in range(len(runs))]
        asked = [[SubGroup(1, tuple(sorted(run)))] for run in runs]
        groups[name] = ProbeCost().fitted(list(zip(asked, seconds, strict=True)))
        guesses = [groups[name](one) for one in asked]
        errors += [abs(guess / spent - 1) for guess, spent in zip(guesses, seconds, strict=True)]
        update += kept.update
    return Costs(groups, update, float(np.mean(errors)))


def _executed(kept: Kept, windows: Sequence[int]) -> Callable[[], object]:
    return lambda: kept.execute(windows)


def counted(rate: Rate, unit: float = 1e-7, read: float = READ) -> Costs:
    """As in the thesis, for so many seconds per counter that is merged.

    The counters of a window are taken to grow in a straight line from the shortest to the longest one.
    """
    groups = {}
    for name, columns in GROUPS.items():
        values = prod(rate.values[column] for column in columns)
        merged, least, most = (_different(values, rate.tuples * length) for length in (1, SHORTEST, LONGEST))
        slope = (most - least) / (LONGEST - SHORTEST)
        post = least - slope * SHORTEST
        groups[name] = ProbeCost(combine=unit * merged, post=unit * read * post, read=unit * read * slope)
    return Costs(groups, unit * rate.tuples, 0.0)


def _different(values: int, tuples: int) -> float:
    """How many different ones of so many values are in so many random tuples, on the average."""
    return values * (1 - exp(-tuples / values))
