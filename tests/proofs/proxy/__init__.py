"""A proxy that knows Kafka's request heads, and the matrix of faults that it plays on the copy protocol."""
