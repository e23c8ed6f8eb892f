"""Experiments on shared sliding-window aggregates: those of the papers, and many windows through the engine."""
