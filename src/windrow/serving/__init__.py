"""What users start: the command line."""
