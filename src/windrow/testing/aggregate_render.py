"""Aggregate calls as DuckDB SQL; those that DuckDB lacks or means differently are spelt out with list functions.

FREQUENT is only collected here, as a list of (pane, value); windrow.testing.frequent computes it from that list. So
are the values of a sketch.
"""

from __future__ import annotations

from sqlglot import exp

from windrow.language import types
from windrow.language.aggregates import AggregateCall

# A sketch may answer these approximately; the reference is what they approximate.
EXACT = {
    "APPROX_COUNT_DISTINCT": "COUNT",
    "APPROX_QUANTILE": "QUANTILE",
    "APPROX_MEDIAN": "MEDIAN",
    "APPROX_TOP_K": "TOP_K",
    "APPROX_FREQUENT": "FREQUENT",
}
# Collected as a list of values; windrow.testing.sketches makes the sketch.
SKETCHES = frozenset({"HLL_SKETCH_AGG", "THETA_SKETCH_AGG", "KLL_SKETCH_AGG", "ITEMS_SKETCH_AGG"})
_SETS = frozenset({"HLL_SKETCH_AGG", "THETA_SKETCH_AGG"})
_DOUBLES = frozenset({"VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "MEDIAN", "PERCENTILE_CONT"})


def render_aggregate(call: AggregateCall, argument: str | None, condition: str | None, pane: str | None) -> str:
    """The call as SQL; `argument`, `condition` (FILTER) and `pane` (of the argument's tuple) are SQL already."""
    name = EXACT.get(call.name, call.name)
    filter_ = f" FILTER (WHERE {condition})" if condition else ""
    if call.argument is None or argument is None:
        return f"count(*){filter_}"
    type_ = _type(call.argument)
    present = f" FILTER (WHERE {argument} IS NOT NULL{f' AND ({condition})' if condition else ''})"
    if name == "QUANTILE":
        # Position max(1, floor(φN)) of the sorted values, the product taken in DOUBLE: 0.29 * 100 gives position 28.
        product = f"CAST('{call.parameter!r}' AS DOUBLE) * count({argument}){filter_}"
        return f"list_sort(list({argument}){present})[greatest(1, CAST(floor({product}) AS BIGINT))]"
    if name in ("TOP_K", "MODE"):
        # Structs are ordered field by field: the highest count first, then the smallest value.
        pairs = f"map_entries(histogram({argument}){present})"
        ranked = f"list_sort(list_transform({pairs}, lambda e: {{'c': -CAST(e.value AS BIGINT), 'v': e.key}}))"
        if name == "MODE":
            return f"{ranked}[1].v"
        first = f"list_slice({ranked}, 1, {call.parameter})"
        return f"list_transform({first}, lambda e: {{'value': e.v, 'count': -e.c}})"
    if name == "FREQUENT":
        return f"list({{'pane': {pane}, 'value': {argument}}}){present}"
    if name in SKETCHES:
        return f"list({'DISTINCT ' if name in _SETS else ''}{argument}){present}"
    if name in _DOUBLES or (name in ("SUM", "AVG") and types.kind(type_) == exp.DType.FLOAT):
        argument = f"CAST({argument} AS DOUBLE)"
    if name in ("PERCENTILE_CONT", "PERCENTILE_DISC"):
        order = "DESC" if call.descending else "ASC"
        fraction = f"CAST('{call.parameter!r}' AS DOUBLE)"
        return f"{name.lower()}({fraction}) WITHIN GROUP (ORDER BY {argument} {order}){filter_}"
    distinct = "DISTINCT " if call.distinct or call.name == "APPROX_COUNT_DISTINCT" else ""
    return f"{name.lower()}({distinct}{argument}){filter_}"


def _type(node: exp.Expr) -> exp.DataType:
    assert isinstance(node.type, exp.DataType)
    return node.type
