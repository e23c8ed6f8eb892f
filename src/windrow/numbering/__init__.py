"""Numbers for tuples, which ROWS windows count: the order, the tuples that wait for it, and the last ones."""
