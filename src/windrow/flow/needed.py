"""Which columns of a source a query names: only they are brought to it."""

from __future__ import annotations

from sqlglot import exp

from windrow.language.bound import BoundQuery, Source


def needed_columns(query: BoundQuery, source: Source) -> set[str]:
    """The columns of a source that the query names."""
    wanted = {
        column.name.lower()
        for column in query.ast.find_all(exp.Column)
        if not column.table or column.table.lower() == source.alias.lower()
    }
    for join in query.ast.find_all(exp.Join):
        wanted.update(key.name.lower() for key in join.args.get("using") or ())
    return {column.name for column in source.columns if column.name.lower() in wanted}
