"""Text to normalised CQL statements; every failure is a windrow.SyntaxError at its place."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from windrow.errors import SyntaxError
from windrow.language import nodes
from windrow.language.dialect import CQL
from windrow.language.parser import STREAM_OPERATORS
from windrow.language.positions import position

MAX_TEXT = 1_000_000
"""Characters in one text; a script that long is generated, and can be given in pieces."""
MAX_DEPTH = 250
"""Levels of nesting; keeps every recursive walk inside Python's stack."""


def parse(text: str) -> list[exp.Expression]:
    """All statements of a script, with stream operators normalised to stand around their SELECT.

    >>> [statement.sql(CQL) for statement in parse("SELECT Istream(a) FROM s [NOW]; SHOW STREAMS")]
    ['ISTREAM(SELECT a FROM s [NOW])', 'SHOW STREAMS']
    """
    if len(text) > MAX_TEXT:
        raise SyntaxError(f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are taken at once")
    try:
        statements = CQL().parse(text)
    except ParseError as error:
        raise _syntax_error(error, text) from None
    except TokenError as error:
        raise SyntaxError(_plain(str(error).split("\n")[0])) from None
    except RecursionError:
        raise SyntaxError(_TOO_DEEP) from None
    except SqlglotError as error:
        raise SyntaxError(_plain(str(error))) from None
    except (AttributeError, TypeError, ValueError, KeyError, IndexError, AssertionError, NotImplementedError) as error:
        # sqlglot stumbles over some broken texts instead of refusing them.
        raise SyntaxError(f"the text cannot be parsed ({type(error).__name__} inside the SQL parser)") from None
    result = []
    for statement in statements:
        if statement is not None and not isinstance(statement, exp.Semicolon):
            check_depth(statement)
            result.append(normalise(statement))
    return result


def parse_one(text: str) -> exp.Expression:
    """The single statement of a text."""
    statements = parse(text)
    if len(statements) != 1:
        raise SyntaxError(f"expected one statement, found {len(statements)}")
    return statements[0]


_TOO_DEEP = f"the text is nested deeper than {MAX_DEPTH} levels; split it, or use IN (…) instead of a long chain of OR"


def check_depth(root: exp.Expression) -> None:
    """Refuse nesting that would overflow the stack of a recursive walk (counted without recursion)."""
    stack: list[tuple[exp.Expression, int]] = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            line, column = position(node)
            raise SyntaxError(_TOO_DEEP, line=line, column=column)
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def normalise(statement: exp.Expression) -> exp.Expression:
    """`SELECT Rstream(x, y) FROM …` becomes `RSTREAM(SELECT x, y FROM …)`, also below the top."""
    for select in list(statement.find_all(exp.Select)):
        found = _operator_in_select_list(select)
        if found is None:
            continue
        kind, arguments, window, place = found
        if len(select.expressions) > 1:
            line, column = position(place)
            raise SyntaxError(
                f"{kind} must hold the whole select list: write SELECT {kind}(x, y, …) or {kind}(SELECT …)",
                line=line,
                column=column,
            )
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            select.set("distinct", exp.Distinct())
            arguments = arguments[0].expressions
        select.set("expressions", arguments or [exp.Star()])
        parent = select.parent
        operator = nodes.StreamOperator(kind=kind, window=window)
        operator.meta.update(place.meta)
        if parent is None:
            statement = operator
        else:
            select.replace(operator)
        operator.set("this", select)
    return statement


def _operator_in_select_list(
    select: exp.Select,
) -> tuple[str, list[exp.Expression], exp.Expression | None, exp.Expression] | None:
    for projection in select.expressions:
        call, window = projection, None
        if isinstance(call, nodes.OutputWindow):
            call, window = call.this, call.args["window"]
        if isinstance(call, exp.Anonymous) and call.name.upper() in STREAM_OPERATORS:
            return call.name.upper(), call.expressions, window, call
        if (  # the thesis writes Rstream-restore(…), which SQL reads as a subtraction
            isinstance(call, exp.Sub)
            and isinstance(call.this, exp.Column)
            and isinstance(call.expression, exp.Anonymous)
            and f"{call.this.name}_{call.expression.name}".upper() in STREAM_OPERATORS
        ):
            return f"{call.this.name}_{call.expression.name}".upper(), call.expression.expressions, None, call.this
    return None


def _syntax_error(error: ParseError, text: str) -> SyntaxError:
    if not error.errors:
        return SyntaxError(_plain(str(error)))
    detail = error.errors[0]
    found = (detail.get("highlight") or "").strip()
    column = detail.get("col")
    if column is not None:
        column = max(1, column - max(len(found), 1) + 1)  # sqlglot gives the end of the token
    reason = _plain(detail.get("description") or "it does not parse")
    where = f"; found {found!r}" if found else "; the text ends there"
    return SyntaxError(reason + where, line=detail.get("line"), column=column)


def _plain(message: str) -> str:
    return message.replace("\x1b[4m", "").replace("\x1b[0m", "").strip().rstrip(".")
