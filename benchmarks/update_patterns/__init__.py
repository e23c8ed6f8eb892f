"""Thesis 3.6: queries 1 to 4 over a connection trace, maintained by three strategies."""
