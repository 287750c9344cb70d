"""Consumer groups of a flow: checkpoints, offset syncs, offsets on the target, and why not."""
