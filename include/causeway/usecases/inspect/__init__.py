"""Look at a flow without changing it: plan, status, and the next command."""
