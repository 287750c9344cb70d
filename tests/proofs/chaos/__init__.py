"""Exactly once, proved by faults: a seeded campaign over real brokers and real Spark.

`test_campaign.py` runs a small one, `make prove` the full one.
"""
