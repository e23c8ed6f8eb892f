"""Scalar expressions as shared, vectorised programs over Arrow columns."""

from windrow.expressions.compiler import Compiler
from windrow.expressions.context import Context
from windrow.expressions.program import Program

__all__ = ["Compiler", "Context", "Program"]
