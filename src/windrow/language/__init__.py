"""CQL: SQL with windows on streams. Text → nodes (sqlglot) → bound query, with every error at its place."""
