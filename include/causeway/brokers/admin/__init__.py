"""The administration of a cluster, and readers like anybody's, on librdkafka."""
