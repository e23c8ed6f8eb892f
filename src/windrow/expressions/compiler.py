"""Typed expression → Program. Equal (sub-)expressions become one object, constants are folded.

>>> from sqlglot import parse_one
>>> from windrow.language.typing import infer
>>> compiler = Compiler()
>>> first, second = parse_one("a + 1 > 2"), parse_one("t.a + 1 < 9")
>>> for expression in (first, second): _ = infer(expression, lambda column: types.BIGINT)
>>> compiler.compile(first).arguments[0] is compiler.compile(second).arguments[0]
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.errors import QueryError, UnsupportedError
from windrow.expressions.arrays import Datum
from windrow.expressions.context import evaluate
from windrow.expressions.program import Control, Kernel, Program, Value
from windrow.language import literals, types
from windrow.language.calls import Call, call
from windrow.language.positions import position
from windrow.language.typing import type_of


@dataclass(frozen=True)
class Site:
    """The node that is being compiled."""

    node: exp.Expr
    view: Call

    @property
    def type(self) -> exp.DataType:
        """Its SQL type."""
        return type_of(self.node)

    @property
    def operand_types(self) -> list[exp.DataType]:
        """The SQL types of its operands."""
        return [type_of(operand) for operand in self.view.operands]

    def unsupported(self, message: str) -> UnsupportedError:
        """An error at its place."""
        return unsupported(self.node, message)


Rule = Callable[["Compiler", Site, "list[Program]"], Program]


class Compiler:
    """Interns programs: what is compiled twice, in whatever query, is one Program."""

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], Program] = {}

    def compile(self, expression: exp.Expr) -> Program:
        """The program of an expression that infer() has typed; UnsupportedError if a part cannot be evaluated."""
        done: dict[int, Program] = {}
        stack: list[tuple[exp.Expr, Call | None]] = [(expression, None)]
        while stack:
            node, ready = stack.pop()
            if ready is not None:
                arguments = [done[id(operand)] for operand in ready.operands]
                done[id(node)] = self._call(Site(node, ready), arguments)
                continue
            leaf = self._leaf(node)
            if leaf is not None:
                done[id(node)] = leaf
                continue
            view = call(node)
            if view is None:
                raise unsupported(node, f"{type(node).__name__.upper()} cannot be evaluated here")
            # The call is made once and kept: it may hold nodes (an unwritten ELSE NULL) that are not in the tree.
            stack.append((node, view))
            stack.extend((operand, None) for operand in reversed(view.operands))
        return done[id(expression)]

    def constant(self, scalar: Datum) -> Program:
        """A constant of Arrow type."""
        # The text, because 0.0 == -0.0 and NaN != NaN; the number of a time, because Python's years end at 9999.
        temporal = pa.types.is_temporal(scalar.type) and scalar.is_valid and hasattr(scalar, "value")
        key = ("constant", str(scalar.type), repr(scalar.value if temporal else scalar.as_py()))
        return self._programs.setdefault(key, Program("constant", scalar.type, constant=scalar))

    def column(self, name: str, arrow: pa.DataType) -> Program:
        """A column of the batch."""
        return self._programs.setdefault(("column", name, str(arrow)), Program("column", arrow, column=name))

    def emit(
        self,
        site: Site,
        op: str,
        arguments: Sequence[Program],
        arrow: pa.DataType,
        kernel: Kernel | None = None,
        *,
        control: Control | None = None,
        options: tuple[Any, ...] = (),
        reason: str = "has no value for some row",
    ) -> Program:
        """The step `op` (with its options) on these arguments; made only if there is none yet."""
        key = (op, options, str(arrow), *map(id, arguments))
        known = self._programs.get(key)
        if known is not None:
            return known
        program = Program(op, arrow, tuple(arguments), kernel, control, reason=reason, node=site.node)
        if all(argument.constant is not None for argument in arguments):
            program = self._folded(program)
        self._programs[key] = program
        return program

    def _folded(self, program: Program) -> Program:
        try:
            value = evaluate(program, [Value(argument.constant) for argument in program.arguments])
        except QueryError:
            return program
        if value.failures:  # a failing constant must fail only where it is used
            return program
        return self.constant(value.data if isinstance(value.data, pa.Scalar) else value.data[0])

    def coerce(self, site: Site, program: Program, target: exp.DataType | pa.DataType) -> Program:
        """The program's value in another type, by the rules of CAST."""
        arrow = types.to_arrow(target) if isinstance(target, exp.DataType) else target
        return self.cast(site, program, arrow)

    def cast(self, site: Site, program: Program, arrow: pa.DataType, *, attempt: bool = False) -> Program:
        """CAST, or TRY_CAST with `attempt`."""
        from windrow.expressions.casts import cast_kernel

        if program.type == arrow:
            return program
        kernel = cast_kernel(program.type, arrow)
        if kernel is None:
            source, target = (types.type_name(types.from_arrow(one)) for one in (program.type, arrow))
            raise site.unsupported(f"CAST from {source} to {target} is not supported")
        if attempt:
            op, run = "try_cast", _attempt(kernel)
        else:
            op, run = "cast", kernel
        name = types.type_name(types.from_arrow(arrow))
        return self.emit(site, op, [program], arrow, run, reason=f"cannot be converted to {name} for some row")

    def _leaf(self, node: exp.Expr) -> Program | None:
        if isinstance(node, exp.Column):
            return self.column(node.name, types.to_arrow(type_of(node)))
        if isinstance(node, exp.Null):
            return self.constant(pa.scalar(None))
        if isinstance(node, exp.Boolean):
            return self.constant(pa.scalar(bool(node.this)))
        if isinstance(node, exp.Interval):
            parts = literals.interval(node)
            if parts is None:
                raise unsupported(node, "an INTERVAL must be one whole number and one unit, as in INTERVAL 5 MINUTE")
            return (
                self.constant(pa.scalar((parts[0], 0, 0), pa.month_day_nano_interval()))
                if parts[0]
                else (self.constant(pa.scalar(parts[1], pa.duration("us"))))
            )
        if isinstance(node, exp.Literal) and node.is_string:
            return self.constant(_text(node))
        value = literals.number(node)
        return None if value is None else self.constant(pa.scalar(value, types.to_arrow(type_of(node))))

    def _call(self, site: Site, arguments: list[Program]) -> Program:
        from windrow.expressions.rules import RULES

        rule = RULES.get(site.view.name)
        if rule is None:
            raise site.unsupported(f"{site.view.name} cannot be evaluated by Windrow yet")
        return rule(self, site, arguments)


def unsupported(node: exp.Expr, message: str) -> UnsupportedError:
    """An UnsupportedError at the node's place."""
    line, column = position(node)
    return UnsupportedError(message, line=line, column=column)


def _text(node: exp.Literal) -> Datum:
    """A quoted literal: text, or the time that infer() found in it."""
    at = literals.moment(node.name) if types.is_temporal(type_of(node)) else None
    if at is None:
        return pa.scalar(node.name, pa.string())
    if types.kind(type_of(node)) == exp.DType.DATE:
        return pa.scalar(at // literals.MICROSECONDS["DAY"], pa.int32()).cast(pa.date32())
    return pa.scalar(at, pa.int64()).cast(pa.timestamp("us"))


def _attempt(kernel: Kernel) -> Kernel:
    """Kernels leave NULL where they fail, so TRY_CAST only has to forget that they failed, if that is decided."""

    def run(datum: Datum) -> Datum:
        result = kernel(datum)
        if not isinstance(result, tuple):
            return result
        return (result[0], result[2]) if len(result) == 3 else result[0]

    return run
