"""flows.yaml and connections, read once at an entry point, become frozen and validated values."""
