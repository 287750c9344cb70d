"""Consumer groups across a mirror: Kafka's own Java classes and real consumers say whether it is exact."""
