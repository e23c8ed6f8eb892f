"""Whether it pays to run one join for several periodic aggregates: by the results that it makes.

A join of windows w1 and w2 that is shared makes all its results, w1 + w2 per pair of rates. A query that is alone makes
only those that are there at one of its due times: a result lives for some time l, at most the shorter window w, and is
seen with probability min(1, l / s). Those are almost all if SLIDE s is short, and next to none where windows are short
samples of the streams.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.joined.shape import JoinShape

LEAST_GAIN = 1.0
"""A join is shared if it makes so many times fewer results than the queries would, each for itself."""
NO_LOSS = 0.9
"""One query begins a join that others may share later if that costs it little."""


def alone(shape: JoinShape) -> float:
    """The results that the query needs, in the same unit: over all distances of two tuples, how likely one is seen.

    Where only the longer window reaches they live as long as the shorter one; beside that there are two slopes.
    """
    short, slide = float(shape.length), float(shape.plan.slide)
    flat = sum(shape.windows) - 2 * short
    slopes = 2 * short - slide if slide <= short else short * short / slide
    return flat * min(1.0, short / slide) + slopes


def pays(shapes: Sequence[JoinShape]) -> bool:
    """Whether one join for all of these makes no more results than one for each; for one alone, hardly more."""
    together = sum(max(shape.windows[side] for shape in shapes) for side in (0, 1))
    least = LEAST_GAIN if len(shapes) > 1 else NO_LOSS * LEAST_GAIN
    return sum(map(alone, shapes)) >= least * together
