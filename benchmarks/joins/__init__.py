"""Thesis 5.4: multi-way window joins: orders, eager and lazy evaluation; and how fast joins and δ* are."""
