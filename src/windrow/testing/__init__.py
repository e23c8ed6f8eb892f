"""For testing Windrow and queries written for it: a reference evaluator (DuckDB) and generators of streams."""

from windrow.testing.comparison import assert_same
from windrow.testing.generators import cut, packets, shuffle_within
from windrow.testing.reference import Reference
from windrow.testing.relation_state import RelationUpdate

__all__ = ["Reference", "RelationUpdate", "assert_same", "cut", "packets", "shuffle_within"]
