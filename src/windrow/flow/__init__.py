"""Continuous queries: a plan as a graph of operators, the windows that feed it, and what comes out of it.

tuples ─► windows (lifetimes) ─► operators, epoch by epoch ─► emission (changes, streams, complete answers)
"""
