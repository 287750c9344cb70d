"""The offset map as a service: translate offsets, keep the map small, find records by time."""
