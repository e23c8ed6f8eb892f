"""The CQL parser: SQL plus windows, stream operators and the DDL of streams and relations."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from windrow.language import nodes
from windrow.language.strict_parser import StrictParser

STREAM_OPERATORS = frozenset({"ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM", "ISTREAM_RESTORE", "RSTREAM_RESTORE"})
_WINDOW_WORDS = frozenset({"RANGE", "WINDOW", "ROWS", "NOW", "PARTITION BY"})
_OBJECTS = {"STREAM": "STREAM", "RELATION": "RELATION", "QUERY": "QUERY"}
_QUERY_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.L_PAREN)
_SHOWN = {"STREAMS": "STREAMS", "RELATIONS": "RELATIONS", "QUERIES": "QUERIES"}


class CQLParser(StrictParser):
    """Overrides only what differs from SQL; everything else is sqlglot's."""

    # ---- statements -----------------------------------------------------------------------------------------------

    def _parse_statement(self) -> exp.Expr | None:
        if not self._curr:  # nothing between two semicolons
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
                self.raise_error("Expected SHOW STREAMS, SHOW RELATIONS or SHOW QUERIES")
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
        return self.expression(nodes.Explain(this=self._parse_query(), format=format_))

    def _parse_create_stream(self) -> exp.Expr:
        name = self._expect_name("stream")
        args: dict[str, Any] = {"this": name, "columns": self._parse_column_list("stream")}
        while self._curr and self._curr.token_type != TokenType.SEMICOLON:
            if self._match_text_seq("TIME"):
                args["time"] = self._expect_name("time column")
            elif self._match_text_seq("SEQUENCE"):
                args["sequence"] = self._expect_name("sequence column")
            elif self._match_text_seq("LATENESS"):
                args["lateness"] = self._parse_duration()
            elif not self._parse_using(args):
                self.raise_error("Expected TIME, SEQUENCE, LATENESS, USING or OPTIONS")
        if "time" not in args:
            self.raise_error("A stream needs a time column: add TIME <column> behind the column list")
        return self.expression(nodes.CreateStream(**args))

    def _parse_create_relation(self) -> exp.Expr:
        name = self._expect_name("relation")
        args: dict[str, Any] = {"this": name, "columns": self._parse_column_list("relation")}
        while self._curr and self._curr.token_type != TokenType.SEMICOLON:
            if self._match_text_seq("NON", "RETROACTIVE"):
                args["non_retroactive"] = True
            elif self._match_text_seq("KEY"):
                args["key"] = self._parse_wrapped_csv(lambda: self._expect_name("key column"))
            elif not self._parse_using(args):
                self.raise_error("Expected KEY, NON RETROACTIVE, USING or OPTIONS")
        return self.expression(nodes.CreateRelation(**args))

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
        if token and token.token_type not in _QUERY_STARTS and self._word() not in STREAM_OPERATORS:
            self.raise_error("Expected SELECT …, RSTREAM(SELECT …) or another stream operator, CREATE, DROP, SHOW or EXPLAIN")
        query = self._parse_stream_operator() or super()._parse_statement()
        if not isinstance(query, (exp.Query, nodes.StreamOperator)):
            self.raise_error("Expected a query: SELECT …, or a stream operator such as RSTREAM(SELECT …)", token)
        assert query is not None
        return query

    def _parse_using(self, args: dict[str, Any]) -> bool:
        if self._match(TokenType.USING):
            args["format"] = self._expect_name("format")
            return True
        if self._match_text_seq("OPTIONS"):
            args["options"] = self._parse_wrapped_csv(self._parse_option)
            return True
        return False

    def _parse_option(self) -> exp.Expr:
        words = []
        while self._curr and self._curr.token_type not in (TokenType.STRING, TokenType.NUMBER, TokenType.EQ):
            if self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                self.raise_error("Expected the option's value: OPTIONS (key 'value', …)")
            words.append(self._curr.text)
            self._advance()
        self._match(TokenType.EQ)
        value = self._parse_primary()
        if not words or not isinstance(value, exp.Literal):
            self.raise_error("Expected an option as key 'value'")
        return self.expression(nodes.Option(this=exp.Literal.string("".join(words)), expression=value))

    def _parse_column_list(self, what: str) -> list[exp.Expr]:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error(f"Expected the columns of the {what}: (name TYPE, …)")
        columns: list[exp.Expr] = self._parse_wrapped_csv(self._parse_field_def)
        for column in columns:
            if not isinstance(column, exp.ColumnDef) or not column.args.get("kind"):
                self.raise_error("Expected a column as: name TYPE")
        return columns

    # ---- windows --------------------------------------------------------------------------------------------------

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return self._parse_trailing_window(super()._parse_table(*args, **kwargs))

    def _parse_trailing_window(self, table: exp.Expr | None) -> exp.Expr | None:
        """The window may also stand behind the alias: `FROM s AS x [RANGE 1 MIN]`, `FROM (SELECT …) AS x [ROWS 3]`."""
        if not isinstance(table, (exp.Table, exp.Subquery)) or not self._at_window():
            return table
        alias = table.args.get("alias")
        table.set("alias", None)
        windowed = self._parse_window_behind(table)
        windowed.set("alias", alias or self._parse_table_alias())
        return windowed

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if self._at_window():
            if isinstance(this, exp.Table):
                return self._parse_window_behind(this)
            if isinstance(this, exp.Anonymous) and this.name.upper() == "WSTREAM":
                return self.expression(nodes.OutputWindow(this=this, window=self._parse_window_spec()))
        return super()._parse_bracket(this)

    def _parse_window_behind(self, source: exp.Expr) -> exp.Expr:
        return self.expression(nodes.Windowed(this=source, window=self._parse_window_spec()))

    def _at_window(self) -> bool:
        at_bracket = bool(self._curr) and self._curr.token_type == TokenType.L_BRACKET
        return at_bracket and self._word(1) in _WINDOW_WORDS

    def _parse_window_spec(self) -> exp.Expr:
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
                args["partition_by"] = self._parse_csv(lambda: self._expect_column())
            if not self._match_text_seq("ROWS"):
                self.raise_error("Expected ROWS <count>")
            args["length"] = self._expect_count()
        amount = self._expect_count if args["kind"] == "ROWS" else self._parse_duration
        while not self._match(TokenType.R_BRACKET):
            if self._match_text_seq("SLIDE"):
                self._once(args, "slide", amount())
            elif self._match_text_seq("OFFSET"):
                self._once(args, "offset", amount())
            elif self._match_text_seq("INTERNAL"):
                self._once(args, "internal", True)
            else:
                self.raise_error("Expected SLIDE, OFFSET, INTERNAL or ] in the window")
        return self.expression(nodes.WindowSpec(**args)).update_positions(token)

    def _once(self, args: dict[str, Any], key: str, value: Any) -> None:
        if key in args:
            self.raise_error(f"{key.upper()} is given twice in one window")
        args[key] = value

    def _parse_duration(self) -> exp.Expr:
        number = self._expect_number("a duration such as 10 MIN, or a number of ticks")
        unit = None
        if (
            self._curr
            and self._curr.token_type not in (TokenType.R_BRACKET, TokenType.SEMICOLON, TokenType.USING)
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
        literal = exp.Literal.number(("-" if negative else "") + self._prev.text)
        return literal.update_positions(token)

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
        query = super()._parse_statement()
        if not isinstance(query, exp.Query):
            self.raise_error(f"Expected a query inside {kind}(…)")
        self._match_r_paren()
        window = self._parse_window_spec() if self._at_window() else None
        return self.expression(nodes.StreamOperator(this=query, kind=kind, window=window)).update_positions(token)

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
