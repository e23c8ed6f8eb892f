"""Cheaper ways to compute the same answers: rewriting rules, cost per unit time, join orders (thesis 3.5.3, 5.3)."""
