"""Windrow: many sliding-window queries over the same streams, exactly, for little more than reading them once."""

from windrow.database import Database, connect
from windrow.errors import (
    BindError,
    CatalogError,
    Error,
    InputError,
    LanguageError,
    QueryError,
    StateError,
    SyntaxError,
    UnsupportedError,
)
from windrow.query import Query

__version__ = "0.1.0"
__all__ = [
    "BindError",
    "CatalogError",
    "Database",
    "Error",
    "InputError",
    "LanguageError",
    "Query",
    "QueryError",
    "StateError",
    "SyntaxError",
    "UnsupportedError",
    "connect",
]
