"""Real Kafka brokers on loopback, for the demo, the tests and anybody's experiments."""
