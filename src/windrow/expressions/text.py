"""Functions of text. Arrow's kernels take patterns, positions and fills as constants; so does Windrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import Datum, as_array, numbers, valid
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program

TEXT = pa.string()
# What trim takes off unless told: the separators of Unicode, no tabs or line ends.
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def constant(site: Site, program: Program, what: str) -> Any:
    """The value of an argument that must be a constant; None for NULL."""
    if program.constant is None:
        raise site.unsupported(f"{site.view.name} needs a constant {what}")
    return program.constant.as_py()


def null(compiler: Compiler, arrow: pa.DataType) -> Program:
    """What every strict function gives for a NULL argument."""
    return compiler.constant(pa.scalar(None, arrow))


def _simple(kernel: Kernel, arrow: pa.DataType) -> Rule:
    def rule(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
        return compiler.emit(site, site.view.name, [compiler.coerce(site, arguments[0], TEXT)], arrow, kernel)

    return rule


def _trim(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    kernels = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}
    characters = constant(site, arguments[1], "set of characters") if len(arguments) > 1 else SPACES
    if characters is None:
        return null(compiler, TEXT)
    operand = compiler.coerce(site, arguments[0], TEXT)
    if characters == "":
        return operand
    kernel = kernels[site.view.name]
    return compiler.emit(
        site, site.view.name, [operand], TEXT, lambda a: kernel(a, characters=characters), options=(characters,)
    )


def _slice(compiler: Compiler, site: Site, operand: Program, start: int, stop: int | None) -> Program:
    """Python's text[start:stop] in code points."""
    operand = compiler.coerce(site, operand, TEXT)
    # Arrow refuses positions beyond int64; no text is longer than int32.
    limit = 2**31 - 1
    start = max(-limit, min(start, limit))
    stop = None if stop is None else max(-limit, min(stop, limit))
    if stop is not None and (start < 0) == (stop < 0) and stop <= start:
        start = stop = 0
    return compiler.emit(
        site,
        "slice",
        [operand],
        TEXT,
        lambda a: pc.utf8_slice_codeunits(a, start=start, stop=stop),
        options=(start, stop),
    )


def _substring(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    start = constant(site, arguments[1], "start")
    count = constant(site, arguments[2], "length") if len(arguments) > 2 else 2**40
    if start is None or count is None:
        return null(compiler, TEXT)
    if count < 0:
        raise site.unsupported("substring with a negative length is not supported")
    if start > 0:
        return _slice(compiler, site, arguments[0], start - 1, start - 1 + count)
    if start == 0:  # position 0 is before the text and counts
        return _slice(compiler, site, arguments[0], 0, max(count - 1, 0))
    return _slice(compiler, site, arguments[0], start, None if start + count >= 0 else start + count)


def _left(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    count = constant(site, arguments[1], "length")
    return null(compiler, TEXT) if count is None else _slice(compiler, site, arguments[0], 0, count)


def _right(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    count = constant(site, arguments[1], "length")
    if count is None:
        return null(compiler, TEXT)
    if count == 0:
        return _slice(compiler, site, arguments[0], 0, 0)
    return _slice(compiler, site, arguments[0], -count, None)


def _pad(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    width = constant(site, arguments[1], "length")
    fill = constant(site, arguments[2], "fill")
    if width is None or fill is None:
        return null(compiler, TEXT)
    if len(fill) != 1 or not 0 <= width <= 2**20:
        raise site.unsupported(f"{site.view.name} needs a fill of one character and a length up to {2**20}")
    kernel = pc.utf8_lpad if site.view.name == "lpad" else pc.utf8_rpad
    padded = compiler.emit(
        site,
        site.view.name,
        [compiler.coerce(site, arguments[0], TEXT)],
        TEXT,
        lambda a: kernel(a, width=width, padding=fill),
        options=(width, fill),
    )
    return _slice(compiler, site, padded, 0, width)


def _replace(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    pattern, replacement = (constant(site, argument, "pattern and replacement") for argument in arguments[1:])
    if pattern is None or replacement is None:
        return null(compiler, TEXT)
    operand = compiler.coerce(site, arguments[0], TEXT)
    if pattern == "":
        return operand

    def run(a: Datum) -> Datum:
        return pc.replace_substring(a, pattern=pattern, replacement=replacement)

    return compiler.emit(site, "replace", [operand], TEXT, run, options=(pattern, replacement))


def _position(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    if len(arguments) > 2:
        raise site.unsupported("strpos takes a text and what to find")
    pattern = constant(site, arguments[1], "text to find")
    if pattern is None:
        return null(compiler, pa.int64())

    def run(a: Datum) -> Datum:
        found = pc.find_substring(a, pattern=pattern)
        if pattern and pc.any(pc.greater(pc.binary_length(a), pc.utf8_length(a))).as_py():
            # Arrow counts bytes: count the characters of what stands before the pattern.
            before = pc.list_element(pc.split_pattern(a, pattern=pattern, max_splits=1), 0)
            found = pc.if_else(pc.less(found, 0), pa.scalar(-1, pa.int32()), pc.utf8_length(before))
        return pc.add(pc.cast(found, pa.int64()), 1)

    operand = compiler.coerce(site, arguments[0], TEXT)
    return compiler.emit(site, "strpos", [operand], pa.int64(), run, options=(pattern,))


def _split_part(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    separator, index = (constant(site, argument, "separator and index") for argument in arguments[1:])
    if separator is None or index is None:
        return null(compiler, TEXT)
    if separator == "":
        raise site.unsupported("split_part needs a separator that is not empty")
    if index == 0:
        raise site.unsupported("split_part counts from 1, or from -1 at the end")

    def run(a: Datum) -> Datum:
        lists = pc.split_pattern(as_array(a), pattern=separator)
        offsets = numbers(lists.offsets).astype(np.int64)
        first, last = offsets[:-1], offsets[1:]
        place = first + index - 1 if index > 0 else last + index
        inside = (place >= first) & (place < last)
        part = lists.values.take(pa.array(np.where(inside, place, 0), mask=~inside))
        return pc.if_else(pa.array(valid(a)), pc.fill_null(part, ""), pa.scalar(None, TEXT))

    operand = compiler.coerce(site, arguments[0], TEXT)
    return compiler.emit(site, "split_part", [operand], TEXT, run, options=(separator, index))


def _concat(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operands = [compiler.coerce(site, argument, TEXT) for argument in arguments]
    # concat leaves NULLs out, || does not; Arrow's own "skip" drops rows in which all are NULL.
    skip = site.view.name == "concat"

    def run(*data: Datum) -> Datum:
        parts = [pc.fill_null(datum, "") for datum in data] if skip else data
        return pc.binary_join_element_wise(*parts, "")

    return compiler.emit(site, site.view.name, operands, TEXT, run)


RULES: dict[str, Rule] = {
    "lower": _simple(pc.utf8_lower, TEXT),
    "upper": _simple(pc.utf8_upper, TEXT),
    "length": _simple(pc.utf8_length, pa.int64()),
    "strlen": _simple(pc.binary_length, pa.int64()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trim),
    "substring": _substring,
    "left": _left,
    "right": _right,
    **dict.fromkeys(("lpad", "rpad"), _pad),
    "replace": _replace,
    "strpos": _position,
    "split_part": _split_part,
    **dict.fromkeys(("concat", "||"), _concat),
}
