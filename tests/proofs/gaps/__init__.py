"""The six losses that a mirror must not step over in silence, on real brokers, for any mirror."""
