"""Prove that both clusters show the same records, in the same order."""
