"""Exactly once, proved by faults: a seeded campaign over real brokers and real Spark.

`test_campaign.py` runs a small one, `python -m chaos.prove` (from tests/, `make prove`) the full one.
"""
