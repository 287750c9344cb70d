"""Mirrors as topics: their names, partitions, settings, ACLs, heartbeats, and the quarantine."""
