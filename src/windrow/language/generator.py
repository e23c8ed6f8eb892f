"""Prints CQL nodes back as text that parses to the same nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.generators.duckdb import DuckDBGenerator

from windrow.language import nodes


class CQLGenerator(DuckDBGenerator):
    """sqlglot's DuckDB generator plus the nodes that CQL adds."""

    QUERY_HINTS = True

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **DuckDBGenerator.TRANSFORMS,
        exp.PercentileCont: lambda self, e: self.func("PERCENTILE_CONT", e.this),
        exp.PercentileDisc: lambda self, e: self.func("PERCENTILE_DISC", e.this),
        exp.Quantile: lambda self, e: self.func("QUANTILE", e.this, e.args.get("quantile")),
        exp.ApproxQuantile: lambda self, e: self.func("APPROX_QUANTILE", e.this, e.args.get("quantile")),
        exp.ApproxTopK: lambda self, e: self.func("APPROX_TOP_K", e.this, e.expression),
        exp.Variance: lambda self, e: self.func("VAR_SAMP", e.this),
        exp.ApproxDistinct: lambda self, e: self.func("APPROX_COUNT_DISTINCT", e.this),
        # sqlglot finds methods by name only for its own nodes.
        nodes.Duration: lambda self, e: self.duration_sql(e),
        nodes.WindowSpec: lambda self, e: self.stream_window_sql(e),
        nodes.Windowed: lambda self, e: self.windowed_sql(e),
        nodes.StreamOperator: lambda self, e: self.streamoperator_sql(e),
        nodes.OutputWindow: lambda self, e: self.outputwindow_sql(e),
        nodes.CreateStream: lambda self, e: self.createstream_sql(e),
        nodes.CreateRelation: lambda self, e: self.createrelation_sql(e),
        nodes.CreateQuery: lambda self, e: self.createquery_sql(e),
        nodes.DropObject: lambda self, e: self.dropobject_sql(e),
        nodes.ShowObjects: lambda self, e: self.showobjects_sql(e),
        nodes.Explain: lambda self, e: self.explain_sql(e),
        nodes.Option: lambda self, e: self.option_sql(e),
    }

    def unsupported(self, message: str) -> None:
        """Say nothing: what CQL lacks is refused by the parser or the binder, never logged to the user's terminal."""

    def withingroup_sql(self, expression: exp.WithinGroup) -> str:
        order = self.expressions(expression.expression, flat=True)
        return f"{self.sql(expression, 'this')} WITHIN GROUP (ORDER BY {order})"

    def duration_sql(self, expression: nodes.Duration) -> str:
        unit = expression.args.get("unit")
        return self.sql(expression, "this") + (f" {unit.name}" if unit else "")

    def stream_window_sql(self, expression: nodes.WindowSpec) -> str:
        kind = expression.args["kind"]
        words = []
        if expression.args.get("partition_by"):
            words.append(f"PARTITION BY {self.expressions(expression, key='partition_by', flat=True)}")
        words.append(kind)
        if kind != "NOW":
            words.append(self.sql(expression, "length") or "UNBOUNDED")
        clauses = (clause for clause in ("slide", "offset") if expression.args.get(clause))
        words.extend(f"{clause.upper()} {self.sql(expression, clause)}" for clause in clauses)
        if expression.args.get("internal"):
            words.append("INTERNAL")
        return f"[{' '.join(words)}]"

    def windowed_sql(self, expression: nodes.Windowed) -> str:
        alias = self.sql(expression, "alias")
        return (
            f"{self.sql(expression, 'this')} {self.sql(expression, 'window')}"
            + (f" AS {alias}" if alias else "")
        )  # fmt: skip

    def streamoperator_sql(self, expression: nodes.StreamOperator) -> str:
        window = self.sql(expression, "window")
        return f"{expression.args['kind']}({self.sql(expression, 'this')})" + (f" {window}" if window else "")

    def outputwindow_sql(self, expression: nodes.OutputWindow) -> str:
        return f"{self.sql(expression, 'this')} {self.sql(expression, 'window')}"

    def createstream_sql(self, expression: nodes.CreateStream) -> str:
        words = [self._head("STREAM", expression), f"TIME {self.sql(expression, 'time')}"]
        if expression.args.get("sequence"):
            words.append(f"SEQUENCE {self.sql(expression, 'sequence')}")
        if expression.args.get("lateness"):
            words.append(f"LATENESS {self.sql(expression, 'lateness')}")
        return " ".join(words + self._using("USING", expression))

    def createrelation_sql(self, expression: nodes.CreateRelation) -> str:
        words = [self._head("RELATION", expression)]
        if expression.args.get("key"):
            words.append(f"KEY ({self.expressions(expression, key='key', flat=True)})")
        if expression.args.get("non_retroactive"):
            words.append("NON RETROACTIVE")
        return " ".join(words + self._using("USING", expression))

    def createquery_sql(self, expression: nodes.CreateQuery) -> str:
        words = [f"CREATE QUERY {self.sql(expression, 'this')}", *self._using("INTO", expression)]
        return " ".join([*words, "AS", self.sql(expression, "expression")])

    def dropobject_sql(self, expression: nodes.DropObject) -> str:
        exists = "IF EXISTS " if expression.args.get("exists") else ""
        return f"DROP {expression.args['kind']} {exists}{self.sql(expression, 'this')}"

    def showobjects_sql(self, expression: nodes.ShowObjects) -> str:
        return f"SHOW {expression.args['kind']}"

    def explain_sql(self, expression: nodes.Explain) -> str:
        format_ = expression.args.get("format")
        return f"EXPLAIN {format_ + ' ' if format_ else ''}{self.sql(expression, 'this')}"

    def option_sql(self, expression: nodes.Option) -> str:
        key = expression.this.name
        plain = all(exp.SAFE_IDENTIFIER_RE.match(part) for part in key.split("."))
        return f"{key if plain else self.sql(expression, 'this')} {self.sql(expression, 'expression')}"

    def _head(self, kind: str, expression: exp.Expr) -> str:
        return (
            f"CREATE {kind} {self.sql(expression, 'this')} ({self.expressions(expression, key='columns', flat=True)})"
        )

    def _using(self, word: str, expression: exp.Expr) -> list[str]:
        words = []
        if expression.args.get("format"):
            words.append(f"{word} {self.sql(expression, 'format')}")
        if expression.args.get("options"):
            words.append(f"OPTIONS ({self.expressions(expression, key='options', flat=True)})")
        return words
