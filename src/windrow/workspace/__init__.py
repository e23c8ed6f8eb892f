"""What is behind a database: the names it holds, the run that may be going on, statements, rows of relations."""
