"""The clusters of a flow: opened, checked, and asked where each pair of partitions is."""
