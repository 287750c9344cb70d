"""The command line: parses, runs one command, prints its outcome, ends with its exit code."""
