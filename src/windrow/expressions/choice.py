"""CASE, IF, COALESCE, NULLIF, GREATEST, LEAST: one of several values per row; branches not taken cannot fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import Datum, Mask, truth, valid
from windrow.expressions.comparison import compare, compare_kernel
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.logic import aligned
from windrow.expressions.program import Failure, Kernel, Program, Value
from windrow.language import types
from windrow.language.typing import case_parts, type_of


def _choose(values: Sequence[Value]) -> Value:
    """Values are condition, value, condition, value, …, default."""
    rows = aligned(values)
    conditions, branches = rows[:-1:2], [*rows[1::2], rows[-1]]
    data = branches[-1].data
    for condition, branch in zip(reversed(conditions), reversed(branches[:-1]), strict=True):
        data = pc.if_else(pc.fill_null(condition.data, False), branch.data, data)
    if not any(value.failures for value in rows):
        return Value(data)
    failures: tuple[Failure, ...] = ()
    reached: Mask = np.ones(len(data), dtype=np.bool_)
    for condition, branch in zip(conditions, branches, strict=False):
        taken = reached & truth(condition.data)
        failures += condition.restricted(reached) + branch.restricted(taken)
        reached = reached & ~taken & ~condition.failed()
    return Value(data, failures + branches[-1].restricted(reached))


def _first(values: Sequence[Value]) -> Value:
    rows = aligned(values)
    data = pc.coalesce(*(value.data for value in rows))
    failures: tuple[Failure, ...] = ()
    open_rows: Mask = np.ones(len(data), dtype=np.bool_)
    for value in rows:
        failures += value.restricted(open_rows)
        open_rows = open_rows & ~valid(value.data) & ~value.failed()
    return Value(data, failures)


def _case(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operand, conditions, values = case_parts(site.view)
    programs = dict(zip(map(id, site.view.operands), arguments, strict=True))
    tests = [programs[id(condition)] for condition in conditions]
    if operand is not None:
        sql = types.common_types(map(type_of, [operand, *conditions]))
        compared = compiler.coerce(site, programs[id(operand)], sql)
        tests = [compare(compiler, site, "=", compared, compiler.coerce(site, test, sql)) for test in tests]
    arrow = types.to_arrow(site.type)
    tests = [compiler.coerce(site, test, pa.bool_()) for test in tests]
    branches = [compiler.coerce(site, programs[id(value)], arrow) for value in values]
    parts = [part for pair in zip(tests, branches, strict=False) for part in pair]
    return compiler.emit(site, "case", [*parts, branches[-1]], arrow, control=_choose)


def _coalesce(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    arrow = types.to_arrow(site.type)
    operands = [compiler.coerce(site, argument, arrow) for argument in arguments]
    return compiler.emit(site, "coalesce", operands, arrow, control=_first)


def _nullif(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    sql = types.common_types(site.operand_types)
    a, b = (compiler.coerce(site, argument, sql) for argument in arguments)
    equal = compare(compiler, site, "=", a, b)
    arrow = types.to_arrow(site.type)
    return compiler.emit(site, "nullif", [equal, arguments[0]], arrow, _blank)


def _blank(equal: Datum, value: Datum) -> Datum:
    return pc.if_else(pc.fill_null(equal, False), pa.scalar(None, value.type), value)


def _extreme(name: str, arrow: pa.DataType) -> Kernel:
    beats = compare_kernel(">" if name == "greatest" else "<", arrow)

    def run(a: Datum, b: Datum) -> Datum:
        # Where one is NULL the other wins: b if a is NULL, a (that is: not b) if b is.
        return pc.if_else(pc.coalesce(beats(b, a), pc.is_null(a)), b, a)

    return run


def _extremes(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    arrow = types.to_arrow(site.type)
    if pa.types.is_nested(arrow):
        raise site.unsupported(f"{site.view.name} cannot compare lists or structs")
    result, *others = [compiler.coerce(site, argument, arrow) for argument in arguments]
    if pa.types.is_null(arrow):
        return result
    kernel = _extreme(site.view.name, arrow)
    for other in others:
        result = compiler.emit(site, site.view.name, [result, other], arrow, kernel)
    return result


RULES: dict[str, Rule] = {
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extremes,
    "least": _extremes,
}
