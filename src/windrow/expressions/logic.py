"""AND, OR, NOT, IS: three-valued logic. AND and OR drop a side's failure where the other side decides alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import Datum, truth
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Control, Kernel, Program, Value

BOOLEAN = pa.bool_()


def aligned(values: Sequence[Value]) -> list[Value]:
    """All values as arrays of one length: a control step works with rows."""
    lengths = [len(value.data) for value in values if not isinstance(value.data, pa.Scalar)]
    length = max(lengths, default=1)
    return [
        Value(pa.repeat(value.data, length), value.failures) if isinstance(value.data, pa.Scalar) else value
        for value in values
    ]


def _connective(kernel: Kernel, decides: Callable[[Datum], Datum]) -> Control:
    def run(values: Sequence[Value]) -> Value:
        left, right = values
        data = kernel(left.data, right.data)
        if not left.failures and not right.failures:
            return Value(data)
        left, right = aligned(values)
        open_left, open_right = (~truth(decides(value.data)) for value in (left, right))
        return Value(data, left.restricted(open_right) + right.restricted(open_left))

    return run


AND = _connective(pc.and_kleene, pc.invert)
OR = _connective(pc.or_kleene, lambda data: data)


def _binary(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operands = [compiler.coerce(site, argument, BOOLEAN) for argument in arguments]
    return compiler.emit(site, site.view.name, operands, BOOLEAN, control=AND if site.view.name == "and" else OR)


def _unary(kernel: Kernel) -> Rule:
    def rule(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
        operand = compiler.coerce(site, arguments[0], BOOLEAN)
        return compiler.emit(site, site.view.name, [operand], BOOLEAN, kernel)

    return rule


def _is_null(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    # NaN is a value in SQL, so Arrow's nan_is_null stays off.
    return compiler.emit(site, "is null", arguments, BOOLEAN, pc.is_null)


RULES: dict[str, Rule] = {
    "and": _binary,
    "or": _binary,
    "not": _unary(pc.invert),
    "is true": _unary(lambda a: pa.array(truth(a))),
    "is false": _unary(lambda a: pa.array(truth(pc.invert(a)), type=BOOLEAN)),
    "is null": _is_null,
}
