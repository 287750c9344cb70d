"""Failover: move consumer groups to the target, at a moment or where they stood, and back."""
