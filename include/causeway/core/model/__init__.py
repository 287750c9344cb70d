"""What the user configured: flows, naming, and the filters of topics and groups."""
