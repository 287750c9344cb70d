"""What a thousand seeds of the simulation leave on the target, as digests."""
