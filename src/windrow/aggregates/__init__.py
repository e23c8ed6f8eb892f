"""Aggregates: the algebra of each aggregate, vectorised over groups (lift, combine, lower; subtract if it exists)."""

from windrow.aggregates.component import Component, Kind, Subtractable
from windrow.aggregates.registry import AGGREGATES, Aggregate, aggregate

__all__ = ["AGGREGATES", "Aggregate", "Component", "Kind", "Subtractable", "aggregate"]
