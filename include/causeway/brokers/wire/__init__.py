"""Reads, commits and transactions over those connections, each as one small class."""
