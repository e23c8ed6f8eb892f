"""Windrow: many sliding-window queries over the same streams, exactly, for little more than reading them once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import (
    BindError,
    CatalogError,
    CheckpointError,
    CoverageError,
    Error,
    InputError,
    LanguageError,
    QueryError,
    SetupError,
    SinkError,
    StateError,
    SyntaxError,
    UnsupportedError,
)
from windrow.progress import Progress, Summary

if TYPE_CHECKING:
    from windrow.aggregates.user import UserAggregate
    from windrow.database import Database, connect
    from windrow.query import Query

__version__ = "0.1.0"
__all__ = [
    "BindError",
    "CatalogError",
    "CheckpointError",
    "CoverageError",
    "Database",
    "Error",
    "InputError",
    "LanguageError",
    "Progress",
    "Query",
    "QueryError",
    "SetupError",
    "SinkError",
    "StateError",
    "Summary",
    "SyntaxError",
    "UnsupportedError",
    "UserAggregate",
    "connect",
]
_HEAVY = {
    "Database": "windrow.database",
    "connect": "windrow.database",
    "Query": "windrow.query",
    "UserAggregate": "windrow.aggregates.user",
}
"""They import the engine with its kernels, which takes a second that `windrow --help` should not."""


def __getattr__(name: str) -> Any:
    if name in _HEAVY:
        return getattr(import_module(_HEAVY[name]), name)
    raise AttributeError(f"module windrow has no attribute {name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
