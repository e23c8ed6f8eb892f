"""EXPLAIN: the plan as text, as JSON, or as a Mermaid graph, with the update pattern of every edge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from windrow.errors import BindError
from windrow.language.units import duration_text
from windrow.plan import nodes
from windrow.plan.patterns import Pattern, pattern, walk
from windrow.windows.spec import NowWindow, RangeWindow, Window

Notes = Sequence[tuple[str, str]]
"""What the engine adds below the plan: (topic, sentence)."""
FORMATS = ("text", "json", "mermaid")
_HOLDS = {
    Pattern.MON: "nothing expires",
    Pattern.WKS: "expires first in, first out",
    Pattern.WK: "expires at known times",
    Pattern.STR: "expires by negative tuples",
}


def explain(plan: nodes.Output, notes: Notes = (), format: str = "text") -> str:
    """The plan in one of the formats text, json and mermaid."""
    if format == "text":
        return _text(plan, notes)
    if format == "json":
        tree = {"plan": _tree(plan, _Labels(plan)), "notes": [{"topic": t, "text": s} for t, s in notes]}
        return json.dumps(tree, indent=2, ensure_ascii=False)
    if format == "mermaid":
        return _mermaid(plan, notes)
    raise BindError(f"EXPLAIN knows the formats {', '.join(FORMATS)}; found {format}")


class _Labels:
    """What each node says of itself; columns carry their source's name only when there are several sources."""

    def __init__(self, plan: nodes.Output) -> None:
        self._timestamps = plan.timestamps
        leaves = (nodes.StreamWindow, nodes.RelationScan, nodes.SubqueryWindow)
        self._single = sum(isinstance(node, leaves) for node in walk(plan)) == 1

    def __call__(self, node: nodes.Node) -> tuple[str, str]:
        """The operator and its details."""
        match node:
            case nodes.StreamWindow(source=source) | nodes.SubqueryWindow(source=source):
                assert source.window is not None
                alias = "" if source.name.lower() == source.alias.lower() else f" AS {source.alias}"
                return "window", f"{source.name}{alias} {window_text(source.window, self._timestamps)}"
            case nodes.RelationScan(source=source):
                relation = source.relation
                return "relation", source.name + (" (non-retroactive)" if relation and relation.non_retroactive else "")
            case nodes.Selection(predicate=predicate):
                return "σ select", self._sql(predicate)
            case nodes.Projection(expressions=expressions):
                return "π project", ", ".join(self._sql(part) for part in expressions)
            case nodes.Named(alias=alias):
                return "ρ name", alias
            case nodes.Union():
                return "∪ union", ""
            case nodes.Distinct():
                return "δ distinct", ""
            case nodes.Join(predicate=predicate, kind=kind):
                return f"⋈ {kind.lower()} join", self._condition(predicate)
            case nodes.RelationJoin(predicate=predicate, retroactive=retroactive):
                return "⋈R join" if retroactive else "⋈NRR join", self._condition(predicate)
            case nodes.SemiJoin(predicate=predicate, kind=kind):
                return "⋉ semi-join", kind + (f" {self._sql(predicate)}" if predicate is not None else "")
            case nodes.Negation(kind=kind, predicate=predicate):
                return "− negation", kind + (f" {self._sql(predicate)}" if predicate is not None else "")
            case nodes.GroupBy(keys=keys, aggregates=calls):
                by = f" by {', '.join(self._sql(key) for key in keys)}" if keys else ""
                return "γ group", ", ".join(self._sql(call.node) for call in calls) + by
            case nodes.TopRows(order=order, limit=limit, offset=offset):
                parts = [f"by {', '.join(self._sql(term) for term in order)}"] if order else []
                parts += [f"limit {limit}"] if limit is not None else []
                parts += [f"offset {offset}"] if offset else []
                return "↓ order", " ".join(parts)
            case nodes.Output():
                return "output", _emission(node)
        return type(node).__name__, ""

    def _condition(self, predicate: exp.Expr | None) -> str:
        return "every pair" if predicate is None else self._sql(predicate)

    def _sql(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Alias) and isinstance(node.this, exp.Column) and node.this.name == node.alias:
            node = node.this
        if self._single:
            node = node.copy()
            for column in node.find_all(exp.Column):
                column.set("table", None)
        return str(node.sql("cql"))


def window_text(window: Window, timestamps: bool) -> str:
    """A window as it is written, in readable units."""
    parts: list[str]
    match window:
        case RangeWindow(length=length, offset=offset):
            parts = ["RANGE " + ("UNBOUNDED" if length is None else duration_text(length, timestamps=timestamps))]
            parts += [f"OFFSET {duration_text(offset, timestamps=timestamps)}"] if offset else []
        case NowWindow():
            parts = ["NOW"]
        case _:
            by = f"PARTITION BY {', '.join(window.partition_by)} " if window.partition_by else ""
            parts = [f"{by}ROWS {window.count}"]
            parts += [f"OFFSET {window.offset}"] if window.offset else []
            timestamps = False
    if window.slide is not None:
        parts.insert(1, f"SLIDE {duration_text(window.slide, timestamps=timestamps)}")
    if window.internal:
        parts.append("INTERNAL")
    return f"[{' '.join(parts)}]"


def _emission(node: nodes.Output) -> str:
    operator = node.operator or ""
    if node.window is not None:
        operator += f" {window_text(node.window, node.timestamps)}"
    if node.slide is not None:
        when = f"every {duration_text(node.slide, timestamps=node.timestamps)}"
    elif node.rows_slide is not None:
        when = f"every {node.rows_slide} tuples"
    else:
        when = "at every change"
    return f"{operator} {when}".strip()


def _text(plan: nodes.Output, notes: Notes) -> str:
    lines: list[tuple[str, str]] = []
    label = _Labels(plan)

    def draw(node: nodes.Node, lead: str, branch: str) -> None:
        operator, details = label(node)
        lines.append((f"{lead}{branch}{operator}  {details}".rstrip(), pattern(node).name))
        below = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        for index, edge in enumerate(node.inputs):
            draw(edge, below, "└─ " if index == len(node.inputs) - 1 else "├─ ")

    draw(plan, "", "")
    width = min(max(len(line) for line, _ in lines), 100)
    used = sorted({Pattern[name] for _, name in lines})
    text = [f"{line.ljust(width)}  {name}" for line, name in lines]
    text.append("")
    text += [f"{one.name}: {_HOLDS[one]}" for one in used]
    text += [f"{topic}: {sentence}" for topic, sentence in notes]
    return "\n".join(text)


def _tree(node: nodes.Node, label: _Labels) -> dict[str, Any]:
    operator, details = label(node)
    return {
        "operator": operator,
        "details": details,
        "pattern": pattern(node).name,
        "inputs": [_tree(edge, label) for edge in node.inputs],
    }


def _mermaid(plan: nodes.Output, notes: Notes) -> str:
    lines = ["graph BT"]
    counter = 0
    label = _Labels(plan)

    def draw(node: nodes.Node) -> str:
        nonlocal counter
        name = f"n{counter}"
        counter += 1
        operator, details = label(node)
        lines.append(f'  {name}["{_escape(f"{operator} {details}".strip())}"]')
        for edge in node.inputs:
            lines.append(f"  {draw(edge)} -->|{pattern(edge).name}| {name}")
        return name

    root = draw(plan)
    if notes:
        text = "<br/>".join(_escape(f"{topic}: {sentence}") for topic, sentence in notes)
        lines += [f'  notes["{text}"]', f"  {root} -.- notes"]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
