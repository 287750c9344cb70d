"""What every other room builds on: identities, errors, endpoints, Kafka's error codes, numbers with
bounds."""
