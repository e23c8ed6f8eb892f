"""Name resolution: which FROM item a column belongs to, looking outwards for correlated subqueries."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from windrow.language.catalog import Column
from windrow.language.positions import error

OUTER = "outer"
"""Key in a column's meta: it belongs to an enclosing query."""


@dataclass
class Scope:
    """The FROM items of one SELECT, by lower-case alias, and the enclosing scope."""

    parent: Scope | None = None
    items: dict[str, tuple[str, tuple[Column, ...]]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    """Columns joined by USING: their plain name means the left item's column."""

    def add(self, alias: str, columns: tuple[Column, ...], node: exp.Expr) -> None:
        """Bring a FROM item into scope under a free alias."""
        if alias.lower() in self.items:
            raise error(node, f"{alias} stands twice in FROM; give one of them another alias")
        self.items[alias.lower()] = (alias, columns)

    def resolve(self, node: exp.Column) -> exp.DataType:
        """Qualify a column reference in place and return its type."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._find(node)
            if found is not None:
                alias, column = found
                name = exp.to_identifier(column.name, quoted=_needs_quotes(column.name))
                name.meta.update(node.this.meta)  # errors that are found later still point at the place
                node.set("this", name)
                node.set("table", exp.to_identifier(alias, quoted=_needs_quotes(alias)))
                if scope is not self:
                    node.meta[OUTER] = True
                return column.type
            scope = scope.parent
        raise error(node, self._unknown(node))

    def _find(self, node: exp.Column) -> tuple[str, Column] | None:
        if node.args.get("db") or node.args.get("catalog"):
            raise error(node, f"{node.sql('cql')}: a column is written as column or alias.column")
        name, table = node.name.lower(), node.table.lower()
        if table:
            if table not in self.items:
                return None
            alias, columns = self.items[table]
            matches = [(alias, column) for column in columns if column.name.lower() == name]
            if not matches:
                raise error(node, f"{alias} has no column {node.name}{_hint(name, [c.name for c in columns])}")
            return matches[0]
        if name in self.merged:
            alias, columns = self.items[self.merged[name]]
            return next((alias, column) for column in columns if column.name.lower() == name)
        matches = [
            (alias, column)
            for alias, columns in self.items.values()
            for column in columns
            if column.name.lower() == name
        ]
        if len(matches) > 1:
            choices = " or ".join(f"{alias}.{column.name}" for alias, column in matches)
            raise error(node, f"{node.name} is ambiguous; write {choices}")
        return matches[0] if matches else None

    def _unknown(self, node: exp.Column) -> str:
        if node.table:
            known = ", ".join(alias for alias, _ in self.items.values())
            return f"there is no {node.table} in FROM; there is {known}"
        names = [column.name for _, columns in self.items.values() for column in columns]
        return f"unknown column {node.name}{_hint(node.name.lower(), names)}"


def _hint(name: str, known: list[str]) -> str:
    close = get_close_matches(name, [candidate.lower() for candidate in known], n=1)
    if close:
        return f"; did you mean {next(candidate for candidate in known if candidate.lower() == close[0])}?"
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"; there are {shown}" if known else ""


def _needs_quotes(name: str) -> bool:
    return not exp.SAFE_IDENTIFIER_RE.match(name)
