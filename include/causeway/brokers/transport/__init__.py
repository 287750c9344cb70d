"""Connections to brokers, and the two requests that carry each batch, on kafka-python's low level."""
