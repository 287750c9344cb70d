"""Failover, decided: where each consumer group begins on the target, what that costs, what is kept of it."""
