"""δ* (thesis 3.5.2): each distinct row has the end of the one in the output, and the latest end of its duplicates."""

from __future__ import annotations

from windrow.kernels.jit import Ints, kernel

NONE = -(1 << 63)
END, NEXT = 0, 1
"""Words of a row: when the one in the output ends; the greatest end of the others, later than that one, or NONE."""


@kernel
def distinct(
    codes: Ints,
    ts: Ints,
    exp: Ints,
    order: Ints,
    ended: Ints,
    upto: int,
    words: Ints,
    out_codes: Ints,
    out_ts: Ints,
    out_exp: Ints,
) -> tuple[int, int]:
    """One epoch: rows that come, then what is left to end by `upto`; returns (output rows, change of duplicates kept).

    `order` gives the rows by ts, and is empty if they are so already; `ended` are the codes whose end was to come in
    the epoch. Every row either enters the output, or becomes the duplicate, or is dropped, and each duplicate enters
    the output at most once: no more output than rows and `ended` together. O(rows + ended).
    """
    count = 0
    kept = 0
    for i in range(codes.size):
        row = order[i] if order.size > 0 else i
        code, begin, end = codes[row], ts[row], exp[row]
        if words[code, END] <= begin and words[code, NEXT] != NONE:
            _take_over(code, words, out_codes, out_ts, out_exp, count)
            count += 1
            kept -= 1
        if words[code, END] <= begin:
            words[code, END] = end
            out_codes[count], out_ts[count], out_exp[count] = code, begin, end
            count += 1
        elif end > words[code, END] and end > words[code, NEXT]:
            kept += words[code, NEXT] == NONE
            words[code, NEXT] = end
    came = count
    for i in range(came):
        if words[out_codes[i], END] <= upto and words[out_codes[i], NEXT] != NONE:
            _take_over(out_codes[i], words, out_codes, out_ts, out_exp, count)
            count += 1
            kept -= 1
    for i in range(ended.size):
        if words[ended[i], END] <= upto and words[ended[i], NEXT] != NONE:
            _take_over(ended[i], words, out_codes, out_ts, out_exp, count)
            count += 1
            kept -= 1
    return count, kept


@kernel
def _take_over(code: int, words: Ints, out_codes: Ints, out_ts: Ints, out_exp: Ints, place: int) -> None:
    """The duplicate enters the output where the row before it ends."""
    out_codes[place], out_ts[place], out_exp[place] = code, words[code, END], words[code, NEXT]
    words[code, END] = words[code, NEXT]
    words[code, NEXT] = NONE
