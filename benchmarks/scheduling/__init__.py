"""Figures 8.7 to 8.10 of the thesis, on a simulated machine with measured costs."""
