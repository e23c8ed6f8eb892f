"""+ - * / // % and bit operations: 64-bit integers that fail instead of wrapping, or DOUBLE."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions import time
from windrow.expressions.arrays import Datum, Mask, Numbers, build, numbers, valid
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.language import types

INT64 = pa.int64()
DOUBLE = pa.float64()
LOWEST = -(2**63)
OVERFLOW = "overflows BIGINT for some row; cast an operand to DOUBLE if an approximate result will do"
ZERO = "divides by zero (or -9223372036854775808 by -1) for some row; use NULLIF(divisor, 0) to get NULL there"

Exact = Callable[[Numbers, Numbers], "tuple[Numbers, Mask]"]  # wrapped values, and where they are wrong


def checked(fast: Kernel, exact: Exact) -> Kernel:
    """Arrow's checked kernel; only if it complains, find the rows that are at fault."""

    def run(a: Datum, b: Datum) -> Datum:
        try:
            return fast(a, b)
        except pa.ArrowInvalid:
            return rowwise(exact)(a, b)

    return run


def rowwise(exact: Exact) -> Kernel:
    """A NumPy function that says where it fails; NULL operands give NULL and never fail."""

    def run(a: Datum, b: Datum) -> tuple[Datum, Mask]:
        where = valid(a) & valid(b)
        with np.errstate(all="ignore"):
            values, failed = exact(numbers(a), numbers(b))
        failed = failed & where
        return build(values, where & ~failed, INT64), failed

    return run


def _add(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _subtract(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def _multiply(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    product = a * b
    # MIN / -1 wraps back to MIN, so division alone would call MIN * -1 right.
    safe = np.where((a == 0) | (a == -1), 1, a)
    wrong = np.where(a == -1, b == LOWEST, (a != 0) & ((product // safe != b) | (product % safe != 0)))
    return product, wrong


def _divide(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    wrong = (b == 0) | ((a == LOWEST) & (b == -1))
    safe = np.where(wrong, 1, b)
    quotient = a // safe
    # NumPy rounds down, SQL towards zero.
    return quotient + ((quotient < 0) & (quotient * safe != a)), wrong


def _remainder(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    wrong = (b == 0) | ((a == LOWEST) & (b == -1))
    return np.fmod(a, np.where(wrong, 1, b)), wrong


def _shift_left(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    shift = np.clip(b, 0, 63)
    limit = np.int64(1) << np.clip(63 - shift, 0, 62)
    wrong = (a < 0) | (b < 0) | ((b > 0) & (a >= limit) & (a != 0)) | ((b >= 63) & (a != 0))
    return np.where(wrong | (a == 0), 0, a << np.minimum(shift, 62)), wrong


def _shift_right(a: Numbers, b: Numbers) -> tuple[Numbers, Mask]:
    outside = (b < 0) | (b > 63)
    return np.where(outside, 0, a >> np.clip(b, 0, 63)), np.zeros(1, dtype=np.bool_)


def _double_remainder(a: Datum, b: Datum) -> Datum:
    with np.errstate(all="ignore"):
        return build(np.fmod(numbers(a), numbers(b)), valid(a) & valid(b), DOUBLE)


INTEGER_KERNELS: dict[str, tuple[Kernel, str]] = {
    "+": (checked(pc.add_checked, _add), OVERFLOW),
    "-": (checked(pc.subtract_checked, _subtract), OVERFLOW),
    "*": (checked(pc.multiply_checked, _multiply), OVERFLOW),
    "//": (checked(pc.divide_checked, _divide), ZERO),
    "%": (rowwise(_remainder), ZERO),
    "&": (pc.bit_wise_and, ""),
    "|": (pc.bit_wise_or, ""),
    "xor": (pc.bit_wise_xor, ""),
    "<<": (rowwise(_shift_left), "shifts a negative number, by a negative number, or out of BIGINT for some row"),
    ">>": (rowwise(_shift_right), ""),
}

DOUBLE_KERNELS: dict[str, Kernel] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "%": _double_remainder,
}


def _binary(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    name = site.view.name
    if any(types.is_temporal(sql) or types.kind(sql) == types.D.INTERVAL for sql in site.operand_types):
        return time.arithmetic(compiler, site, arguments)
    if types.is_integer(site.type):
        operands = [compiler.coerce(site, argument, INT64) for argument in arguments]
        kernel, reason = INTEGER_KERNELS[name]
        return compiler.emit(site, name, operands, INT64, kernel, reason=reason)
    operands = [compiler.coerce(site, argument, DOUBLE) for argument in arguments]
    return compiler.emit(site, name, operands, DOUBLE, DOUBLE_KERNELS[name])


def _negate_exactly(a: Datum) -> Datum:
    try:
        return pc.negate_checked(a)
    except pa.ArrowInvalid:
        failed = (numbers(a) == LOWEST) & valid(a)
        return build(-numbers(a), valid(a) & ~failed, INT64), failed


def _negate(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    if types.is_integer(site.type):
        operand = compiler.coerce(site, arguments[0], INT64)
        return compiler.emit(site, "negate", [operand], INT64, _negate_exactly, reason=OVERFLOW)
    return compiler.emit(site, "negate", [compiler.coerce(site, arguments[0], DOUBLE)], DOUBLE, pc.negate)


def _not(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    return compiler.emit(site, "~", [compiler.coerce(site, arguments[0], INT64)], INT64, pc.bit_wise_not)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%", "&", "|", "xor", "<<", ">>"), _binary),
    "negate": _negate,
    "~": _not,
}
