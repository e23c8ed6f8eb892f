"""The sharing rules as data: who may share what with whom, under which condition (thesis 8.3, 8.4.3)."""
