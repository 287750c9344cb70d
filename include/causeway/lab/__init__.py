"""Real Kafka clusters on this machine, for the demo, for the tests and for trying things out.

Brokers are Apache Kafka's own jars, one process each. Nothing listens beyond 127.0.0.1, and every
certificate and password is made here and thrown away with the cluster's home directory.
"""
