"""Failback: from the target of a failed-over flow back to its old primary."""
