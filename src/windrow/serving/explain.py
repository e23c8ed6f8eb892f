"""`windrow explain`: the plans of a script's queries, and what they share, without Spark."""

from __future__ import annotations

import json
from difflib import get_close_matches

import windrow
from windrow.errors import CatalogError


def explain_queries(db: windrow.Database, names: list[str], format: str) -> str:
    """EXPLAIN of the named queries, or of all, in one text."""
    queries = [_find(db, name) for name in names] if names else db.queries()
    plans = {query.name: query.explain(format) for query in queries}
    if format == "json":
        return json.dumps({name: json.loads(plan) for name, plan in plans.items()}, indent=2, ensure_ascii=False)
    if len(plans) == 1:
        return next(iter(plans.values()))
    head = "%% {}" if format == "mermaid" else "── {} ──"
    return "\n\n".join(f"{head.format(name)}\n{plan}" for name, plan in plans.items())


def _find(db: windrow.Database, name: str) -> windrow.Query:
    known = {query.name.lower(): query for query in db.queries()}
    if name.lower() in known:
        return known[name.lower()]
    close = get_close_matches(name.lower(), known, n=3)
    listed = ", ".join(known[one].name for one in close or list(known)[:8])
    hint = f"did you mean {listed}?" if close else f"it has {listed or 'none'}" + " …" * (len(known) > 8)
    raise CatalogError(f"the script has no query {name}; {hint}")
