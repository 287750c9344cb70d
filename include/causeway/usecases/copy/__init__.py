"""A run of a flow: rounds of plan, copy and report."""
