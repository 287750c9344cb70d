"""flows.yaml: its shape, its rules, its lines, and the frozen values that come of it."""
