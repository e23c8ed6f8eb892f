"""What is done with the groups of a window once they are looked up: HAVING, the select list, ORDER BY, LIMIT."""
