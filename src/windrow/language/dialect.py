"""The CQL dialect of sqlglot: DuckDB's SQL, whose meaning Windrow keeps, with streams and windows added."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from windrow.language.generator import CQLGenerator
from windrow.language.parser import CQLParser


class CQL(DuckDB):
    """Registered with sqlglot under the name `cql`."""

    class Tokenizer(DuckDB.Tokenizer):
        # Without this sqlglot swallows everything behind EXPLAIN as one opaque command.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{word: token for word, token in DuckDB.Tokenizer.KEYWORDS.items() if word != "EXPLAIN"},
            DuckDB.Tokenizer.HINT_START: TokenType.HINT,
        }
        # Behind the last two it is refused; else it would be a comment there that somebody takes for a hint.
        TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = {TokenType.SELECT, TokenType.DISTINCT, TokenType.HINT}

    Parser = CQLParser
    Generator = CQLGenerator
