"""Kernels: Numba on flat arrays, no objects. dtype dispatch is the caller's, outside the jitted code."""
