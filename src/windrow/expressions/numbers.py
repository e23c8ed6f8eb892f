"""Functions of numbers: rounding, roots, logarithms, angles. Arrow's own kernels where it has them: they call the
same C library as DuckDB, NumPy's do not."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arithmetic import OVERFLOW
from windrow.expressions.arrays import Datum, Mask, build, numbers, valid
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.language import types

INT64 = pa.int64()
DOUBLE = pa.float64()


def _numpy(function: Kernel, arrow: pa.DataType = DOUBLE) -> Kernel:
    def run(*data: Datum) -> Datum:
        where = valid(data[0])
        for datum in data[1:]:
            where = where & valid(datum)
        with np.errstate(all="ignore"):
            return build(function(*map(numbers, data)), where, arrow)

    return run


DOUBLE_KERNELS: dict[str, Kernel] = {
    "ceil": pc.ceil,
    "floor": pc.floor,
    "sqrt": pc.sqrt,
    "cbrt": _numpy(np.cbrt),
    "exp": pc.exp,
    "ln": pc.ln,
    "log10": pc.log10,
    "log2": pc.log2,
    "sin": pc.sin,
    "cos": pc.cos,
    "tan": pc.tan,
    "asin": pc.asin,
    "acos": pc.acos,
    "atan": pc.atan,
    "sinh": pc.sinh,
    "cosh": pc.cosh,
    "tanh": pc.tanh,
    "degrees": _numpy(lambda x: x * (180 / math.pi)),
    "radians": _numpy(lambda x: x * (math.pi / 180)),
    "power": pc.power,
    "atan2": pc.atan2,
}

TEST_KERNELS: dict[str, Kernel] = {
    "isnan": _numpy(np.isnan, pa.bool_()),
    "isinf": _numpy(np.isinf, pa.bool_()),
    "isfinite": _numpy(np.isfinite, pa.bool_()),
}


def _double(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operands = [compiler.coerce(site, argument, DOUBLE) for argument in arguments]
    return compiler.emit(site, site.view.name, operands, DOUBLE, DOUBLE_KERNELS[site.view.name])


def _test(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operand = compiler.coerce(site, arguments[0], DOUBLE)
    return compiler.emit(site, site.view.name, [operand], pa.bool_(), TEST_KERNELS[site.view.name])


def _absolute(a: Datum) -> Datum:
    try:
        return pc.abs_checked(a)
    except pa.ArrowInvalid:
        failed: Mask = (numbers(a) == -(2**63)) & valid(a)
        return build(np.abs(numbers(a)), valid(a) & ~failed, INT64), failed


def _abs(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    arrow = types.to_arrow(site.type)
    kernel = _absolute if arrow == INT64 else pc.abs
    return compiler.emit(site, "abs", [compiler.coerce(site, arguments[0], arrow)], arrow, kernel, reason=OVERFLOW)


def _sign(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    arrow = INT64 if types.is_integer(site.operand_types[0]) else DOUBLE
    kernel = _numpy(lambda x: (x > 0).astype(np.int8) - (x < 0).astype(np.int8), pa.int8())
    return compiler.emit(site, "sign", [compiler.coerce(site, arguments[0], arrow)], pa.int8(), kernel)


def _half_away(x: Datum) -> Datum:
    # x + 0.5 would be wrong for 0.49999999999999994; the fraction is exact.
    low = np.trunc(x)
    return low + np.where(np.abs(x - low) >= 0.5, np.copysign(1.0, x), 0.0)


def _round_to(digits: int) -> Kernel:
    """DuckDB's round(x, n): scale, round half away from zero, scale back; what overflows stays as it was."""

    def run(x: Datum) -> Datum:
        if digits == 0:
            return np.where(np.isfinite(x), _half_away(x), x)
        if digits < 0:
            factor = np.float64(10.0) ** -digits
            result = _half_away(x / factor) * factor
            return np.where(np.isfinite(x), np.where(np.isfinite(result), result, 0.0), x)
        factor = np.float64(10.0) ** digits
        result = _half_away(x * factor) / factor
        return np.where(np.isfinite(result), result, x)

    return run


def _round(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    digits = 0
    if len(arguments) > 1:
        constant = arguments[1].constant
        if constant is None:
            raise site.unsupported("round needs a constant number of digits")
        if not constant.is_valid:
            return compiler.constant(pa.scalar(None, types.to_arrow(site.type)))
        digits = constant.as_py()
    if types.is_integer(site.type):
        if digits < 0:
            raise site.unsupported("round of an integer to tens is not supported; cast the integer to DOUBLE")
        return compiler.coerce(site, arguments[0], INT64)
    if abs(digits) > 300:
        raise site.unsupported("round to more than 300 digits is not supported")
    operand = compiler.coerce(site, arguments[0], DOUBLE)
    return compiler.emit(site, "round", [operand], DOUBLE, _numpy(_round_to(digits)), options=(digits,))


def _trunc(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    if len(arguments) > 1:
        raise site.unsupported("trunc with a number of digits is not supported; use round")
    if types.is_integer(site.type):
        return compiler.coerce(site, arguments[0], INT64)
    return compiler.emit(site, "trunc", [compiler.coerce(site, arguments[0], DOUBLE)], DOUBLE, pc.trunc)


def _pi(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    return compiler.constant(pa.scalar(math.pi))


RULES: dict[str, Rule] = {
    **dict.fromkeys(DOUBLE_KERNELS, _double),
    **dict.fromkeys(TEST_KERNELS, _test),
    "abs": _abs,
    "sign": _sign,
    "round": _round,
    "trunc": _trunc,
    "pi": _pi,
}
