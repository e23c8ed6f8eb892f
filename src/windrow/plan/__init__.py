"""The logical plan: typed frozen nodes, the update pattern of every edge, and EXPLAIN."""
