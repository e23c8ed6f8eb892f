"""Spark: sessions, sources, the slicer on the executors, sinks, checkpoints."""
