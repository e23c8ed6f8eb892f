"""Where ticks stand among ascending edges: a guess that is right when edges are evenly spaced, else a binary search."""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel


@kernel
def rank_ticks(edges: Ints, ticks: Ints, out: Ints) -> None:
    """out[i] = how many edges are <= ticks[i], as numpy.searchsorted(edges, ticks, side="right")."""
    count = edges.size
    if count == 0:
        out[:] = 0
        return
    lowest = edges[0]
    highest = edges[count - 1]
    # Edges that are far apart may differ by more than an int64; then nothing is guessed.
    spread = highest - lowest
    per_tick = (count - 1) / spread if spread > 0 else 0.0
    for i in range(ticks.size):
        tick = ticks[i]
        if tick < lowest:
            out[i] = 0
            continue
        if tick >= highest:
            out[i] = count
            continue
        low = 0
        high = count - 1
        if per_tick > 0.0:
            # Evenly spaced edges: right, or wrong by one because of rounding.
            guess = min(int((tick - lowest) * per_tick), count - 2)
            if edges[guess] > tick:
                high = guess
                if guess > 0 and edges[guess - 1] <= tick:
                    low = guess - 1
            else:
                low = guess
                if tick < edges[guess + 1]:
                    high = guess + 1
        # edges[low] <= tick < edges[high]
        while high - low > 1:
            middle = (low + high) >> 1
            if edges[middle] <= tick:
                low = middle
            else:
                high = middle
        out[i] = high
