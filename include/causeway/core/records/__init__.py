"""Kafka's record batches as bytes: cut, checked, decoded, compressed, and MirrorMaker 2's formats."""
