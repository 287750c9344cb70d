"""Talks to Kafka: connect, fetch, append, transactions, admin, internal topics, and one map of errors."""
