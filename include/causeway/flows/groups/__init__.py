"""Consumer groups of a flow: checkpoints, offset syncs and offsets on the target, and why not where not."""
