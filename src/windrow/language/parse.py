"""Text to normalised CQL statements; every failure is a windrow.SyntaxError at its place."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from windrow.errors import SyntaxError
from windrow.language import nodes
from windrow.language.dialect import CQL
from windrow.language.parser import STREAM_OPERATORS
from windrow.language.positions import position
from windrow.language.stack import deep_stack
from windrow.language.strict_parser import line_and_column
from windrow.language.units import UNITS

MAX_TEXT = 1_000_000
"""Characters in one text; a script that long is generated, and can be given in pieces."""
MAX_TOKENS = 200_000
"""Words and signs in one text: some seconds of parsing."""
MAX_WORD = 400
"""Characters of one name or number: no DOUBLE needs more digits, and Python refuses to convert thousands of them."""
MAX_NESTING = 100
"""Levels of parentheses, brackets and CASE; sqlglot parses them by recursion."""
MAX_DEPTH = 250
"""Levels of nesting; keeps every recursive walk inside Python's stack."""


def parse(text: str) -> list[exp.Expr]:
    """All statements of a script, with stream operators normalised to stand around their SELECT.

    >>> [statement.sql(CQL) for statement in parse("SELECT Istream(a) FROM s [NOW]; SHOW STREAMS")]
    ['ISTREAM(SELECT a FROM s [NOW])', 'SHOW STREAMS']
    """
    if len(text) > MAX_TEXT:
        raise SyntaxError(f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are taken at once")
    try:
        with deep_stack():
            statements = CQL().parser().parse(_tokens(text), text)
    except ParseError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise SyntaxError(_TOO_DEEP) from None
    except SqlglotError as error:
        raise SyntaxError(str(error)) from None
    except (AttributeError, TypeError, ValueError, KeyError, IndexError, AssertionError, NotImplementedError) as error:
        # sqlglot stumbles over some broken texts instead of refusing them.
        raise SyntaxError(f"the text cannot be parsed ({type(error).__name__} inside the SQL parser)") from None
    result = []
    for statement in statements:
        if isinstance(statement, exp.Expr):
            check_depth(statement)
            result.append(normalise(statement))
    return result


def parse_one(text: str) -> exp.Expr:
    """The single statement of a text."""
    statements = parse(text)
    if len(statements) != 1:
        raise SyntaxError(f"expected one statement, found {len(statements)}")
    return statements[0]


_TOO_DEEP = (
    f"the text is nested too deeply (at most {MAX_NESTING} levels of parentheses or CASE, and {MAX_DEPTH} of operators)"
    "; split it, or use IN (…) instead of a long chain of OR"
)
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})


def check_depth(root: exp.Expr) -> None:
    """Refuse nesting that would overflow the stack of a recursive walk (counted without recursion)."""
    stack: list[tuple[exp.Expr, int]] = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            line, column = position(node)
            raise SyntaxError(_TOO_DEEP, line=line, column=column)
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def normalise(statement: exp.Expr) -> exp.Expr:
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
        if kind == "RSTREAM" and isinstance(parent, (exp.Exists, exp.In)):
            continue  # the thesis writes Rstream there; it only names the relation that is meant anyway
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
) -> tuple[str, list[exp.Expr], exp.Expr | None, exp.Expr] | None:
    for projection in select.expressions:
        call, window = projection, None
        if (
            isinstance(call, exp.Alias)
            and isinstance(call.this, exp.Anonymous)
            and call.this.name.upper() in STREAM_OPERATORS
        ):
            kind = call.this.name.upper()
            line, column = position(call.args["alias"])
            raise SyntaxError(
                f"{kind} takes no alias; name its columns inside: {kind}(x AS name, …)", line=line, column=column
            )
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


def _tokens(text: str) -> list[Token]:
    """The tokens of a text, each with the place where it starts, none nested too deeply."""
    try:
        tokens = CQL().tokenize(text)
    except TokenError as error:
        raise _token_error(error, text) from None
    if len(tokens) > MAX_TOKENS:
        raise SyntaxError(f"the text has {len(tokens):,} words and signs; at most {MAX_TOKENS:,} are taken at once")
    depth, previous = 0, None
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MAX_NESTING:
            line, column = line_and_column(text, token.start)
            raise SyntaxError(_TOO_DEEP, line=line, column=column)
        if len(token.text) > MAX_WORD and token.token_type not in (TokenType.STRING, TokenType.HINT):
            line, column = line_and_column(text, token.start)
            reason = f"the name or number has {len(token.text):,} characters; at most {MAX_WORD} are taken"
            raise SyntaxError(reason, line=line, column=column)
        if previous is not None and _is_one_word(previous, token):
            line, column = line_and_column(text, previous.start)
            raise SyntaxError(f"{text[previous.start : token.end + 1]} is not a number", line=line, column=column)
        previous = token
        token.comments = []  # else they become part of names, of grouping keys, and of what queries share
        width = token.end - token.start
        if token.col <= width:  # it spans lines; sqlglot noted where it ends
            token.line, column = line_and_column(text, token.start)
            token.col = column + width
    return tokens


def _is_one_word(number: Token, name: Token) -> bool:
    """`0x1F` and `1a` are written as one word, but sqlglot reads `0 AS x1F`; `10s` in a window is good."""
    kinds = (number.token_type, name.token_type) == (TokenType.NUMBER, TokenType.VAR)
    return kinds and number.end + 1 == name.start and name.text.upper() not in UNITS


def _token_error(error: TokenError, text: str) -> SyntaxError:
    cause = error.__cause__
    missing = re.match(r"Missing (.+) from \d+:(\d+)", str(cause))
    if missing is not None:
        line, column = line_and_column(text, int(missing[2]))
        kind = {"'": "string", '"': "quoted name"}.get(missing[1], "text")
        return SyntaxError(f"the {kind} that starts here has no closing {missing[1]}", line=line, column=column)
    if "/*" in text and isinstance(cause, IndexError):
        line, column = line_and_column(text, text.rindex("/*"))
        return SyntaxError("the comment that starts here has no closing */", line=line, column=column)
    line, column = line_and_column(text, min(error.end or 0, len(text)))
    reason = "the text cannot be split into words near here; look for a quote or comment left open"
    return SyntaxError(reason, line=line, column=column)


def _syntax_error(error: ParseError) -> SyntaxError:
    detail = error.errors[0]
    reason, found = detail["description"], detail["highlight"] or ""
    found = found if len(found) <= 40 else found[:37] + "..."
    if found and reason.startswith(f"{found.upper()} is not"):
        return SyntaxError(reason, line=detail["line"], column=detail["col"])
    where = f"; found {found!r}" if found else ", but the statement ends here"
    return SyntaxError(reason + where, line=detail["line"], column=detail["col"])
