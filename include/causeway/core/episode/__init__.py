"""An episode is one failover with its failback: where a flow is in it, and the next command."""
