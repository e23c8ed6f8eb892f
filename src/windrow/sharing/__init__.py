"""Which queries share state: one slice per stream, predicate and grouping serves them all (thesis 8.3)."""
