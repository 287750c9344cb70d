"""Use cases, one file each: load, decide, act, record, report."""
