"""Comparisons: NaN equals NaN and is greater than every other number, -0.0 equals 0.0, NULL is unknown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import Datum, build, numbers, valid
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.language import types
from windrow.language.typing import COMPARISONS

BOOLEAN = pa.bool_()

ARROW: dict[str, Kernel] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _ordered(name: str) -> Kernel:
    """The comparison with NaN as the greatest number; Arrow's own when there is no NaN."""
    plain = ARROW[name]

    def run(a: Datum, b: Datum) -> Datum:
        x, y = numbers(a), numbers(b)
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        if not nan_x.any() and not nan_y.any():
            return plain(a, b)
        equal = (x == y) | (nan_x & nan_y)
        less = (x < y) | (~nan_x & nan_y)
        results = {
            "=": equal,
            "<>": ~equal,
            "<": less,
            "<=": less | equal,
            ">": ~(less | equal),
            ">=": ~less,
        }
        return build(results[name], valid(a) & valid(b), BOOLEAN)

    return run


FLOATING = {name: _ordered(name) for name in ARROW}


def compare_kernel(name: str, arrow: pa.DataType) -> Kernel:
    """The kernel of =, <>, <, <=, > or >= for two values of this type."""
    return FLOATING[name] if pa.types.is_floating(arrow) else ARROW[name]


def _differ(arrow: pa.DataType) -> Kernel:
    unequal = compare_kernel("<>", arrow)

    def run(a: Datum, b: Datum) -> Datum:
        # Where one side is NULL, <> gives NULL, and they differ unless both are.
        return pc.coalesce(unequal(a, b), pc.xor(pc.is_null(a), pc.is_null(b)))

    return run


def compare(compiler: Compiler, site: Site, name: str, a: Program, b: Program) -> Program:
    """`a name b` for two programs of one type."""
    arrow = a.type
    if pa.types.is_null(arrow):
        if name in ARROW:
            return compiler.constant(pa.scalar(None, BOOLEAN))
        return compiler.constant(pa.scalar(name == "is not distinct from"))
    if pa.types.is_nested(arrow):
        raise site.unsupported("lists and structs cannot be compared")
    if name in ARROW:
        return compiler.emit(site, name, [a, b], BOOLEAN, compare_kernel(name, arrow))
    differ = compiler.emit(site, "is distinct from", [a, b], BOOLEAN, _differ(arrow))
    return differ if name == "is distinct from" else compiler.emit(site, "not", [differ], BOOLEAN, pc.invert)


def unified(compiler: Compiler, site: Site, arguments: list[Program]) -> list[Program]:
    """The arguments in the one type in which they are compared."""
    sql = types.common_types(site.operand_types)
    return [compiler.coerce(site, argument, sql) for argument in arguments]


def _comparison(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    a, b = unified(compiler, site, arguments)
    return compare(compiler, site, site.view.name, a, b)


def _between(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    if site.node.args.get("symmetric"):
        raise site.unsupported("BETWEEN SYMMETRIC is not supported; write the bounds in order")
    value, low, high = unified(compiler, site, arguments)
    bounds = [compare(compiler, site, ">=", value, low), compare(compiler, site, "<=", value, high)]
    return compiler.emit(site, "between", bounds, BOOLEAN, pc.and_kleene)


def _in(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    value, *items = unified(compiler, site, arguments)
    constants = [item.constant for item in items if item.constant is not None]
    if len(constants) == len(items) and not pa.types.is_floating(value.type) and not pa.types.is_null(value.type):
        present = [constant for constant in constants if constant.is_valid]
        members = pa.concat_arrays([pa.repeat(item, 1) for item in present]) if present else pa.nulls(0, value.type)
        kernel = _member(members, len(present) < len(constants))
        return compiler.emit(site, "in", [value], BOOLEAN, kernel, options=tuple(map(id, items)))
    result = compare(compiler, site, "=", value, items[0])
    for item in items[1:]:
        equal = compare(compiler, site, "=", value, item)
        result = compiler.emit(site, "any", [result, equal], BOOLEAN, pc.or_kleene)
    return result


def _member(items: Datum, has_null: bool) -> Kernel:
    def run(value: Datum) -> Datum:
        found = pc.is_in(value, value_set=items, skip_nulls=True)
        unknown = pc.is_null(value)
        if has_null:  # x IN (1, NULL) is never false
            unknown = pc.or_(unknown, pc.invert(found))
        return pc.if_else(unknown, pa.scalar(None, BOOLEAN), found)

    return run


RULES: dict[str, Rule] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    "between": _between,
    "in": _in,
}
