"""sqlglot's DuckDB parser without its leniency: what is not CQL is refused at its token, and every node has a place.

sqlglot accepts many dialects at once and skips what it does not understand (`SELECT a,, b`). Here a sub-parser that
is switched off leaves its keyword unread, so the keyword itself becomes the unexpected token of the error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

# The clauses behind FROM in their order; LIMIT and OFFSET stand in any.
_CLAUSES = {
    TokenType.WHERE: 1, TokenType.GROUP_BY: 2, TokenType.HAVING: 3, TokenType.ORDER_BY: 4, TokenType.LIMIT: 5,
    TokenType.OFFSET: 5,
}  # fmt: skip

# Keywords that users know from SQL, with what to write instead.
_INSTEAD = {
    "WITH": "write the subquery in FROM",
    "QUALIFY": "filter a subquery's output with WHERE",
    "WINDOW": "put the window in brackets behind the stream: FROM s [RANGE 1 MIN]",
    "RANGE": "put the window in brackets behind the stream: FROM s [RANGE 1 MIN]",
    "ROWS": "put the window in brackets behind the stream: FROM s [ROWS 10]",
    "FETCH": "use LIMIT",
    "TOP": "use LIMIT",
    "INTO": "use CREATE QUERY name INTO format AS SELECT …",
    "MINUS": "use EXCEPT",
    "LATERAL": "use a join or a subquery",
    "APPLY": "use a join or a subquery",
    "PIVOT": "use one aggregate with FILTER (WHERE …) for each column",
    "UNPIVOT": "use UNION ALL",
    "TABLESAMPLE": "use WHERE",
    "SAMPLE": "use WHERE",
    "VALUES": "push the rows into a stream or a relation",
    "INSERT": "push rows into a stream, or read them with USING format",
    "UPDATE": "push rows into a stream, or read them with USING format",
    "DELETE": "tuples leave a stream with its window",
    "ROLLUP": "use UNION ALL of several GROUP BY",
    "CUBE": "use UNION ALL of several GROUP BY",
    "GROUPING SETS": "use UNION ALL of several GROUP BY",
    "TABLE": "use STREAM or RELATION",
    "VIEW": "use CREATE QUERY name AS SELECT …",
    "FOR": "",
    "CLUSTER BY": "",
    "DISTRIBUTE BY": "",
    "SORT BY": "use ORDER BY",
    "SORT": "use ORDER BY",
    "AT": "use a window with OFFSET: FROM s [RANGE 1 MIN OFFSET 1 HOUR]",
    "START": "",
    "CONNECT BY": "",
    "STRAIGHT_JOIN": "use JOIN",
    "OVER": "put the window behind the stream: FROM s [RANGE 1 MIN]",
}
T = TypeVar("T")

_REQUIRED = re.compile(r"Required keyword: '(\w+)' missing for <class '[\w.]*\.(\w+)'>")
_TOO_MANY = re.compile(r"The number of provided arguments \((\d+)\) is greater than .* arguments \((\d+)\)")
_UNEXPECTED = "Invalid expression / Unexpected token"
_NO_TABLE = "Expected table name"
_GROUP_BY = "Expected the columns or expressions to group by"
_ORDER_BY = "Expected the columns or expressions to order by"
# Messages that a hint for the found keyword says better.
_REPLACEABLE = (_UNEXPECTED, _NO_TABLE, "Required keyword", "Expected SELECT", "Expected CREATE")
# SQL's keywords that sqlglot would take for the alias of a table.
_NO_ALIAS = frozenset({"PIVOT", "UNPIVOT", "MINUS", "SORT", "AT", "SAMPLE"})


def _in_order(rank: int, parse_clause: Callable[[Any], Any]) -> Callable[[StrictParser], Any]:
    """The clause's parser, which also refuses a clause behind one that comes later in SQL."""

    def parser(self: StrictParser) -> Any:
        if rank < self._last_clause:
            self.raise_error("Expected the clauses in this order: WHERE, GROUP BY, HAVING, ORDER BY, LIMIT")
        clause = parse_clause(self)
        self._last_clause = rank
        return clause

    return parser


class StrictParser(DuckDBParser):
    """Refuses with one error at one token; see the module's docstring."""

    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        token: _in_order(rank, DuckDBParser.QUERY_MODIFIER_PARSERS[token]) for token, rank in _CLAUSES.items()
    }
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {}
    JSON_OPERATORS: ClassVar[dict[TokenType, Any]] = {}
    # DuckDB's own parser of QUANTILE forgets what is behind the second argument; the ordinary one refuses it.
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in DuckDBParser.FUNCTION_PARSERS.items() if name != "QUANTILE"
    }

    _in_join = False
    _last_clause = 0

    # ---- errors ---------------------------------------------------------------------------------------------------

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """One ParseError whose `col` is where the token starts; `highlight` is empty at the end of the statement."""
        place = token or self._curr
        found = self.sql[place.start : place.end + 1] if place else ""
        behind = self._prev.end + 1 if self._prev else 0
        line, column = line_and_column(self.sql, place.start if place else behind)
        reason = self._in_words(message, found)
        error = ParseError.new(
            f"line {line}, column {column}: {reason}", description=reason, line=line, col=column, highlight=found
        )  # fmt: skip
        if self.error_level == ErrorLevel.IMMEDIATE:
            raise error
        self.errors.append(error)

    def _in_words(self, message: str, found: str) -> str:
        if found.startswith("/*+"):
            return "Expected one hint right behind SELECT: SELECT /*+ SYNOPSIS(interval) PRIORITY(1) */ …"
        word = " ".join(found.upper().split())
        if word in _INSTEAD and message.startswith(_REPLACEABLE):
            hint = _INSTEAD[word]
            return f"{word} is not part of the language here" + (f"; {hint}" if hint else "")
        if message == _UNEXPECTED:
            return "Expected an operator, a clause (WHERE, GROUP BY, HAVING, ORDER BY, LIMIT) or the statement's end"
        if message.startswith(_NO_TABLE):
            return "Expected a stream, a relation or a subquery"
        missing = _REQUIRED.match(message)
        if missing:
            return _MISSING.get(missing[2], "Expected an expression")
        too_many = _TOO_MANY.match(message)
        if too_many:
            return f"Expected at most {too_many[2]} arguments for the function, got {too_many[1]}"
        return message

    def _parse_batch_statements(
        self, parse_method: Callable[[Any], Any], sep_first_statement: bool = True
    ) -> list[Any]:
        # sqlglot's own also reads, and drops, the ELSE and END of procedures.
        statements = []
        while self._chunk_index < len(self._chunks):
            self._advance_chunk()
            statements.append(parse_method(self))
            if self._index < self._tokens_size:
                self.raise_error(_UNEXPECTED)
        return statements

    # ---- switched off: each leaves its keyword unread -------------------------------------------------------------

    def _parse_nothing(self, *args: Any, **kwargs: Any) -> None:
        return None

    _parse_with = _parse_into = _parse_connect = _parse_lateral = _parse_version = _parse_nothing
    _parse_table_sample = _parse_pivots = _parse_derived_table_values = _parse_stream = _parse_nothing
    _parse_historical_data = _parse_table_hints = _parse_unnest = _parse_nothing

    def _parse_pipe_syntax_query(self, query: Any) -> Any:
        self.raise_error("|> is not part of the language; write SELECT … FROM … WHERE …")
        return query

    def _parse_placeholder(self) -> exp.Expr | None:
        token = self._curr
        if self._match_set(self.PLACEHOLDER_PARSERS):
            self.raise_error("Parameters are not part of the language; write the value itself", token)
        return None

    def _parse_respect_or_ignore_nulls(self, this: exp.Expr | None) -> exp.Expr | None:
        return this  # the keyword stays unread

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if self._match_set((TokenType.L_BRACKET, TokenType.L_BRACE), advance=False):
            self.raise_error("Lists, structs and their elements are not part of the language")
        return this

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        found = super()._parse_in(this, alias)
        if not found.expressions and found.args.get("query") is None:
            self.raise_error("Expected values or a query: IN (1, 2), IN (SELECT …)", self._prev)
        return found

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        if self._curr and self._curr.text.upper() in ("SYMMETRIC", "ASYMMETRIC"):
            self.raise_error("Expected BETWEEN low AND high")
        return super()._parse_between(this)

    def _parse_type_size(self) -> exp.DataTypeParam | None:
        token = self._curr
        size = super()._parse_type_size()
        if size is None or not (isinstance(size.this, exp.Literal) and size.this.is_int) or size.args.get("expression"):
            self.raise_error("Expected a whole number as the size of the type", token)
        return size

    # ---- lists without holes --------------------------------------------------------------------------------------

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        item = parse_method()
        items = [] if item is None else [item]
        while self._match(sep, advance=False):
            if item is None:
                self.raise_error("Expected an expression before the comma")
            self._advance()
            if isinstance(item, exp.Expr):
                self._add_comments(item)
            item = parse_method()
            if item is None:
                self.raise_error("Expected another element behind the comma")
            items.append(item)
        return items

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        if not self._match(TokenType.GROUP_BY):
            return None
        if self._curr and self._curr.token_type in (TokenType.ALL, TokenType.DISTINCT):
            self.raise_error(_GROUP_BY)
        return self._some(super()._parse_group(skip_group_by_token=True), _GROUP_BY)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> None:
        return self._parse_no_grouping_sets()

    def _parse_grouping_sets(self) -> None:
        return self._parse_no_grouping_sets()

    def _parse_no_grouping_sets(self) -> None:
        if self._curr and self._curr.text.upper() in ("ROLLUP", "CUBE", "GROUPING SETS"):
            self.raise_error(_UNEXPECTED)

    def _parse_order(self, this: exp.Expr | None = None, skip_order_token: bool = False) -> exp.Expr | None:
        if self._curr and self._curr.token_type == TokenType.ORDER_BY and self._next.text.upper() == "ALL":
            self._advance()
            self.raise_error(_ORDER_BY)
        order = super()._parse_order(this, skip_order_token)
        return self._some(order, _ORDER_BY) if order is not this else order

    def _some(self, clause: T, message: str) -> T:
        if isinstance(clause, exp.Expr) and not clause.expressions:
            self.raise_error(message)
        return clause

    def _parse_limit(
        self, this: exp.Expr | None = None, top: bool = False, skip_limit_token: bool = False
    ) -> exp.Expr | None:  # fmt: skip
        if top or not self._curr or self._curr.token_type != TokenType.LIMIT:
            return this
        place = self._index + 1
        limit = super()._parse_limit(this, top, skip_limit_token)
        plain = isinstance(limit, exp.Limit) and not limit.args.get("limit_options") and not limit.expressions
        values = [limit.expression, *([offset] if (offset := limit.args.get("offset")) else [])] if limit else []
        if not plain or not all(isinstance(value, exp.Literal) and value.is_int for value in values):
            self._refuse_number("LIMIT", place)
        return limit

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
        place = self._index + 1
        offset = super()._parse_offset(this)
        if offset is not this and offset is not None:
            value = offset.expression
            if not (isinstance(value, exp.Literal) and value.is_int) or offset.expressions:
                self._refuse_number("OFFSET", place)
        return offset

    def _refuse_number(self, clause: str, place: int) -> None:
        """At the token that makes it no whole number: of `1 + 1`, the sign."""
        number, *behind = self._tokens[place : place + 2]
        token = behind[0] if behind and number.text.isdecimal() else number
        self.raise_error(f"{clause} takes a whole number", token)

    # ---- joins ----------------------------------------------------------------------------------------------------

    def _parse_joins(self, *args: Any, **kwargs: Any) -> Iterator[exp.Join]:
        # sqlglot looks for `a JOIN b JOIN c ON … ON …` behind every join, in exponential time; one ON each is enough.
        if not self._in_join:
            yield from super()._parse_joins(*args, **kwargs)

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        token = self._curr
        join = self._within_join(True, lambda: DuckDBParser._parse_join(self, *args, **kwargs))
        if join is None and token and token.token_type == TokenType.COMMA and self._prev is token:
            self._parse_table()  # says what is wrong with it, if it is there at all
            self.raise_error("Expected a stream, a relation or a subquery behind the comma")
        if join is not None and token and token.token_type != TokenType.COMMA:
            self._check_join(join, token)
        return self._noted(join, token)

    def _check_join(self, join: exp.Join, token: Token) -> None:
        """A JOIN says how it joins; the comma and CROSS JOIN, which do not, are checked nowhere else."""
        method, kind = join.args.get("method"), join.args.get("kind")
        condition = join.args.get("on") is not None or join.args.get("using")
        if method:
            self.raise_error(f"{method} JOIN is not part of the language; use JOIN … ON or USING (columns)", token)
        if kind == "CROSS" and condition:
            self.raise_error("CROSS JOIN takes no ON or USING; use JOIN", token)
        if kind != "CROSS" and not condition:
            self.raise_error("JOIN needs ON condition or USING (columns); CROSS JOIN needs neither", token)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token = self._curr
        table = self._within_join(False, lambda: DuckDBParser._parse_table(self, *args, **kwargs))
        return self._noted(table, token)

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        if self._curr and self._curr.token_type != TokenType.IDENTIFIER and self._curr.text.upper() in _NO_ALIAS:
            return None
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_query_modifiers(self, this: Any) -> Any:
        before, self._last_clause = self._last_clause, 0
        try:
            return self._within_join(False, lambda: DuckDBParser._parse_query_modifiers(self, this))
        finally:
            self._last_clause = before

    def _within_join(self, inside: bool, parse_method: Callable[[], T]) -> T:
        before, self._in_join = self._in_join, inside
        try:
            return parse_method()
        finally:
            self._in_join = before

    # ---- places ---------------------------------------------------------------------------------------------------

    def _parse_unary(self) -> exp.Expr | None:
        token = self._curr
        return self._noted(super()._parse_unary(), token)

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token = self._curr
        return self._noted(super()._parse_select_query(*args, **kwargs), token)

    def parse_set_operation(self, *args: Any, **kwargs: Any) -> exp.SetOperation | None:
        """As sqlglot's, with the place of the word UNION, EXCEPT or INTERSECT."""
        token = self._curr
        operation = super().parse_set_operation(*args, **kwargs)
        if operation is not None and token:
            operation.update_positions(token)
        return operation

    def _parse_expression(self) -> exp.Expr | None:
        # DuckDB's prefix alias `name: value` starts with a name; sqlglot also takes `SELECT :` for one.
        if self._next.token_type == TokenType.COLON and self._curr.token_type not in self.ALIAS_TOKENS:
            return super(DuckDBParser, self)._parse_expression()
        return super()._parse_expression()

    def _noted(self, node: T, token: Token | None) -> T:
        if isinstance(node, exp.Expr) and token and "line" not in node.meta:
            node.update_positions(token)
        return node


_MISSING = {
    "Where": "Expected a condition behind WHERE",
    "Having": "Expected a condition behind HAVING",
    "Limit": "Expected a whole number behind LIMIT",
    "Offset": "Expected a whole number behind OFFSET",
    "From": "Expected a stream, a relation or a subquery behind FROM",
    "Table": "Expected the name of a stream or relation",
    "Join": "Expected a stream, a relation or a subquery to join",
    "Paren": "Expected an expression behind (",
    "Alias": "Expected a name behind AS",
    "Cast": "Expected CAST(expression AS type)",
    "TryCast": "Expected TRY_CAST(expression AS type)",
    "Between": "Expected BETWEEN low AND high",
    "Case": "Expected CASE WHEN condition THEN value … END",
    "If": "Expected WHEN condition THEN value",
    "Union": "Expected a query behind UNION",
    "Except": "Expected a query behind EXCEPT",
    "Intersect": "Expected a query behind INTERSECT",
    "Exists": "Expected EXISTS (SELECT …)",
    "In": "Expected IN (values or a query)",
    "Subquery": "Expected a query in the parentheses",
}


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at `index`.

    >>> line_and_column("ab\\ncd", 4)
    (2, 2)
    """
    return text.count("\n", 0, index) + 1, index - (text.rfind("\n", 0, index) + 1) + 1
