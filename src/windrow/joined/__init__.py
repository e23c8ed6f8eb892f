"""Periodic aggregates over one join: the join runs once, its results are kept once, for windows of all lengths."""
