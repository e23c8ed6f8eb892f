"""240 queries on Spark beside what Spark takes just to read the data, and beside its own window()."""
