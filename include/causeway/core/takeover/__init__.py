"""A mirror of MirrorMaker 2, taken over: what its topics say, and where it is beside the source."""
