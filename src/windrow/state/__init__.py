"""Rows with lifetimes, and the buffers that hold them in the order in which they expire."""
