"""The CQL parser: SQL plus windows, stream operators and the DDL of streams and relations."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.language import nodes
from windrow.language.strict_parser import StrictParser

STREAM_OPERATORS = frozenset({"ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM", "ISTREAM_RESTORE", "RSTREAM_RESTORE"})
_WINDOW_WORDS = frozenset({"RANGE", "WINDOW", "ROWS", "NOW", "PARTITION BY"})
_OBJECTS = {"STREAM": "STREAM", "RELATION": "RELATION", "QUERY": "QUERY"}
_NO_UNITS = (
    TokenType.R_BRACKET,
    TokenType.USING,
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.COMMA,
    TokenType.R_PAREN,
)
_QUERY_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.L_PAREN)
_INSIDE_WINDOWS = frozenset({"INTERNAL", "SLIDE", "OFFSET", "RANGE", "ROWS"})
_SHOWN = frozenset({"STREAMS", "RELATIONS", "QUERIES", "SHARING"})


class CQLParser(StrictParser):
    """Overrides only what differs from SQL; everything else is sqlglot's."""

    # ---- statements -----------------------------------------------------------------------------------------------

    def _parse_statement(self) -> exp.Expr | None:
        if not self._curr or self._match(TokenType.SEMICOLON):  # nothing, or a comment, between two semicolons
            return None
        statement = self._parse_definition()
        if statement is None:
            return self._parse_query()
        if self._curr:
            self.raise_error("Expected the end of the statement")
        return statement

    def _parse_definition(self) -> exp.Expr | None:
        word = self._word()
        if word == "CREATE" and self._word(1) in _OBJECTS:
            self._advance(2)
            return {
                "STREAM": self._parse_create_stream,
                "RELATION": self._parse_create_relation,
                "QUERY": self._parse_create_query,
            }[self._prev.text.upper()]()
        if word == "DROP" and self._word(1) in _OBJECTS:
            self._advance(2)
            kind = self._prev.text.upper()
            exists = bool(self._match_text_seq("IF", "EXISTS"))
            return self.expression(nodes.DropObject(this=self._expect_name(kind.lower()), kind=kind, exists=exists))
        if word == "SHOW":
            self._advance()
            if self._word() not in _SHOWN:
                self.raise_error("Expected SHOW STREAMS, SHOW RELATIONS, SHOW QUERIES or SHOW SHARING")
            self._advance()
            return self.expression(nodes.ShowObjects(kind=self._prev.text.upper()))
        if word == "EXPLAIN":
            return self._parse_explain()
        if word in ("CREATE", "DROP"):
            self._advance()
            self.raise_error(f"Expected {word} STREAM, {word} RELATION or {word} QUERY")
        return None

    def _parse_explain(self) -> exp.Expr:
        self._advance()
        format_ = None
        if self._word() in ("TEXT", "JSON", "MERMAID") and self._next:
            format_ = self._curr.text.upper()
            self._advance()
        if self._curr and not self._next:  # the name of a registered query
            return self.expression(nodes.Explain(this=self._expect_name("query"), format=format_))
        if self._curr and not self._at_query():
            self.raise_error("Expected EXPLAIN [TEXT | JSON | MERMAID] and a query, or the name of a registered one")
        return self.expression(nodes.Explain(this=self._parse_query(), format=format_))

    def _parse_create_stream(self) -> exp.Expr:
        name = self._expect_name("stream")
        args: dict[str, Any] = {"this": name, "columns": self._parse_column_list("stream")}
        while self._curr:
            token = self._curr
            if self._match_text_seq("TIME"):
                self._once(args, "time", token, self._expect_name("time column"))
            elif self._match_text_seq("SEQUENCE"):
                self._once(args, "sequence", token, self._expect_name("sequence column"))
            elif self._match_text_seq("LATENESS"):
                self._once(args, "lateness", token, self._parse_duration())
            elif not self._parse_using(args):
                self.raise_error("Expected TIME, SEQUENCE, LATENESS, USING or OPTIONS")
        if "time" not in args:
            self.raise_error("Expected TIME <column> behind the column list: a stream needs a time column")
        return self.expression(nodes.CreateStream(**args))

    def _parse_create_relation(self) -> exp.Expr:
        name = self._expect_name("relation")
        args: dict[str, Any] = {"this": name, "columns": self._parse_column_list("relation")}
        while self._curr:
            token = self._curr
            if self._match_text_seq("NON", "RETROACTIVE"):
                self._once(args, "non_retroactive", token, True)
            elif self._match_text_seq("KEY"):
                self._once(args, "key", token, self._parse_wrapped_csv(lambda: self._expect_name("key column")))
            elif not self._parse_using(args):
                self.raise_error("Expected KEY, NON RETROACTIVE, USING or OPTIONS")
        return self.expression(nodes.CreateRelation(**args))

    def _once(self, args: dict[str, Any], key: str, token: Token, value: Any) -> None:
        if key in args:
            self.raise_error(f"{key.upper().replace('_', ' ')} is given twice", token)
        args[key] = value

    def _parse_create_query(self) -> exp.Expr:
        args: dict[str, Any] = {"this": self._expect_name("query")}
        if self._match_text_seq("INTO"):
            args["format"] = self._expect_name("format")
            if self._match_text_seq("OPTIONS"):
                args["options"] = self._parse_wrapped_csv(self._parse_option)
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expected AS and the query behind CREATE QUERY <name>")
        args["expression"] = self._parse_query()
        return self.expression(nodes.CreateQuery(**args))

    def _parse_query(self) -> exp.Expr:
        token = self._curr
        if token and not self._at_query():
            self.raise_error(
                "Expected SELECT …, RSTREAM(SELECT …) or another stream operator, CREATE, DROP, SHOW or EXPLAIN"
            )
        query = self._parse_stream_operator() or super()._parse_statement()
        if not isinstance(query, (exp.Query, nodes.StreamOperator)):
            self.raise_error("Expected a query: SELECT …, or a stream operator such as RSTREAM(SELECT …)", token)
        assert query is not None
        return query

    def _at_query(self) -> bool:
        return self._curr.token_type in _QUERY_STARTS or self._word() in STREAM_OPERATORS

    def _parse_using(self, args: dict[str, Any]) -> bool:
        token = self._curr
        if self._match(TokenType.USING):
            self._once(args, "format", token, self._expect_name("format"))
        elif self._match_text_seq("OPTIONS"):
            self._once(args, "options", token, self._parse_wrapped_csv(self._parse_option))
        else:
            return False
        return True

    def _parse_option(self) -> exp.Expr:
        """`path 'x'`, `kafka.bootstrap.servers = 'x'`, `'a key' 'x'`; a value is a text, a number, TRUE or FALSE."""
        token = self._curr
        if self._match(TokenType.STRING):
            key = self._prev.text
        else:
            key = self._expect_option_word()
            while self._match(TokenType.DOT):
                key += f".{self._expect_option_word()}"
        self._match(TokenType.EQ)
        if not self._match_set((TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)):
            self.raise_error("Expected the option's value: OPTIONS (key 'value', …)")
        value = exp.Literal(this=self._prev.text, is_string=self._prev.token_type != TokenType.NUMBER)
        option = nodes.Option(this=exp.Literal.string(key), expression=value)
        return self.expression(option).update_positions(token)

    def _expect_option_word(self) -> str:
        """Any word, also one that means something elsewhere in SQL: sources have options like select and table."""
        if self._curr and self._curr.token_type != TokenType.IDENTIFIER and self._curr.text.isidentifier():
            self._advance()
            return str(self._prev.text)
        return self._expect_name("option").name

    def _parse_column_list(self, what: str) -> list[exp.Expr]:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error(f"Expected the columns of the {what}: (name TYPE, …)")
        return self._parse_wrapped_csv(self._parse_column_definition)

    def _parse_column_definition(self) -> exp.Expr:
        token = self._curr
        column = self._parse_field_def()
        if not isinstance(column, exp.ColumnDef) or not column.args.get("kind"):
            self.raise_error("Expected a column as: name TYPE", token)
        assert column is not None
        if column.args.get("constraints"):
            self.raise_error("Constraints of a column are not part of the language; write only: name TYPE", token)
        return column

    # ---- windows --------------------------------------------------------------------------------------------------

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return self._parse_trailing_window(super()._parse_table(*args, **kwargs))

    def _parse_trailing_window(self, table: exp.Expr | None) -> exp.Expr | None:
        """The window may also stand behind the alias: `FROM s AS x [RANGE 1 MIN]`, `FROM (SELECT …) AS x [ROWS 3]`."""
        if not isinstance(table, (exp.Table, exp.Subquery)) or not self._match(TokenType.L_BRACKET, advance=False):
            return table
        alias = table.args.get("alias")
        table.set("alias", None)
        windowed = self._parse_window_behind(table)
        windowed.set("alias", alias or self._parse_table_alias())
        return windowed

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        behind_window = bool(self._prev) and self._prev.token_type == TokenType.R_BRACKET
        quoted = bool(self._curr) and self._curr.token_type == TokenType.IDENTIFIER
        if behind_window and not quoted and self._word() in _INSIDE_WINDOWS and not self._can_parse_limit_or_offset():
            word = self._word()
            self.raise_error(f"Expected {word} inside the brackets of the window; for an alias, write AS {word}")
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table) and self._match(TokenType.L_BRACKET, advance=False):
            return self._parse_window_behind(this)
        if isinstance(this, exp.Anonymous) and this.name.upper() == "WSTREAM" and self._at_window():
            return self.expression(nodes.OutputWindow(this=this, window=self._parse_stream_window()))
        return super()._parse_bracket(this)

    def _parse_window_behind(self, source: exp.Expr) -> exp.Expr:
        return self.expression(nodes.Windowed(this=source, window=self._parse_stream_window()))

    def _at_window(self) -> bool:
        at_bracket = bool(self._curr) and self._curr.token_type == TokenType.L_BRACKET
        return at_bracket and self._word(1) in _WINDOW_WORDS

    def _parse_stream_window(self) -> exp.Expr:
        token = self._curr
        self._match(TokenType.L_BRACKET)
        args: dict[str, Any] = {}
        if self._match_text_seq("NOW"):
            args["kind"] = "NOW"
        elif self._match_text_seq("RANGE") or self._match_text_seq("WINDOW"):
            args["kind"] = "RANGE"
            if not self._match_text_seq("UNBOUNDED"):
                args["length"] = self._parse_duration()
        else:
            args["kind"] = "ROWS"
            if self._match(TokenType.PARTITION_BY):
                args["partition_by"] = self._parse_csv(self._expect_column)
                if self._word() != "ROWS":
                    self.raise_error("Expected ROWS <count> behind the columns of PARTITION BY")
            if not self._match_text_seq("ROWS"):
                self.raise_error("Expected a window: RANGE, WINDOW, ROWS, PARTITION BY … ROWS or NOW")
            args["length"] = self._expect_count()
        amount = self._expect_count if args["kind"] == "ROWS" else self._parse_duration
        while not self._match(TokenType.R_BRACKET):
            key = self._word().lower()
            if key not in ("slide", "offset", "internal"):
                self.raise_error("Expected SLIDE, OFFSET, INTERNAL or ] in the window")
            if key in args:
                self.raise_error(f"{key.upper()} is given twice in one window")
            self._advance()
            args[key] = True if key == "internal" else amount()
        return self.expression(nodes.WindowSpec(**args)).update_positions(token)

    def _parse_duration(self) -> exp.Expr:
        number = self._expect_number("a duration such as 10 MIN, or a number of ticks")
        unit = None
        if (
            self._curr
            and self._curr.token_type not in _NO_UNITS
            and self._word() not in ("SLIDE", "OFFSET", "INTERNAL", "TIME", "SEQUENCE", "OPTIONS", "LATENESS")
        ):
            unit = exp.var(self._curr.text.upper()).update_positions(self._curr)
            self._advance()
        return self.expression(nodes.Duration(this=number, unit=unit)).update_positions(number)

    def _expect_count(self) -> exp.Expr:
        return self._expect_number("a number of tuples")

    def _expect_number(self, what: str) -> exp.Expr:
        token = self._curr
        negative = bool(self._match(TokenType.DASH))
        if not self._match(TokenType.NUMBER):
            self.raise_error(f"Expected {what}")
        # Not Literal.number(), which makes a Neg of a negative number: the sign stays in the text.
        return exp.Literal(this=("-" if negative else "") + self._prev.text, is_string=False).update_positions(token)

    # ---- stream operators -----------------------------------------------------------------------------------------

    def _parse_stream_operator(self) -> exp.Expr | None:
        """`RSTREAM(SELECT …)`, `ISTREAM-RESTORE(SELECT …)`, `WSTREAM(SELECT …)[ROWS 10]`."""
        start = self._index
        token = self._curr
        kind = self._word()
        if kind not in STREAM_OPERATORS:
            return None
        self._advance()
        if self._match(TokenType.DASH):
            if not self._match_text_seq("RESTORE"):
                self._retreat(start)
                return None
            kind = f"{kind}_RESTORE"
        if kind not in STREAM_OPERATORS or not self._match(TokenType.L_PAREN):
            self._retreat(start)
            return None
        inner = self._curr
        if not inner or inner.token_type not in _QUERY_STARTS:
            self.raise_error(f"Expected a query inside {kind}(…)")
        query = self._parse_query()
        if not isinstance(query, exp.Query):
            self.raise_error(f"Expected a query inside {kind}(…)", inner)
        self._match_r_paren()
        window = self._parse_stream_window() if self._at_window() else None
        return self.expression(nodes.StreamOperator(this=query, kind=kind, window=window)).update_positions(token)

    def _parse_unary(self) -> exp.Expr | None:
        # EXISTS (RSTREAM(SELECT …)): elsewhere an operator around a query reads as a function of a subquery.
        if self._word() in STREAM_OPERATORS and self._word(1) == "(" and self._word(2) == "SELECT":
            return self._parse_stream_operator()
        return super()._parse_unary()

    def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:
        return self._parse_stream_operator() or super()._parse_wrapped_select(table=table)

    def _parse_hint(self) -> exp.Hint | None:
        """`/*+ SYNOPSIS(interval) PRIORITY(1) */`; which hints there are, the binder knows."""
        token = self._curr
        if not self._match(TokenType.HINT):
            return None
        body = exp.Var(this=" ".join(token.text[len("/*+") : -len("*/")].split()))
        return self.expression(exp.Hint(expressions=[body])).update_positions(token)

    # ---- small helpers --------------------------------------------------------------------------------------------

    def _word(self, ahead: int = 0) -> str:
        index = self._index + ahead
        return self._tokens[index].text.upper() if index < len(self._tokens) else ""

    def _expect_name(self, what: str) -> exp.Expr:
        token = self._curr
        name = self._parse_id_var(any_token=False)
        if name is None:
            self.raise_error(f"Expected the name of a {what}")
        assert name is not None
        return name.update_positions(token)

    def _expect_column(self) -> exp.Expr:
        column = self._parse_column()
        if not isinstance(column, exp.Column):
            self.raise_error("Expected a column name")
        assert column is not None
        return column
