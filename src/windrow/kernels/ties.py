"""Sorting inside runs of tied rows: most runs are a few rows, for which an insertion sort beats every other."""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import Ints, kernel

SHORT = 24


@kernel
def sort_runs(run: Ints, codes: Ints, rows: Ints) -> None:
    """Sort codes, and rows with them, inside each stretch of equal `run`; equal codes stay in their order."""
    start = 0
    while start < run.size:
        stop = start + 1
        while stop < run.size and run[stop] == run[start]:
            stop += 1
        if stop - start <= SHORT:
            for i in range(start + 1, stop):
                code, row = codes[i], rows[i]
                at = i
                while at > start and codes[at - 1] > code:
                    codes[at], rows[at] = codes[at - 1], rows[at - 1]
                    at -= 1
                codes[at], rows[at] = code, row
        else:
            order = np.argsort(codes[start:stop], kind="mergesort")
            codes[start:stop] = codes[start:stop][order]
            rows[start:stop] = rows[start:stop][order]
        start = stop
