"""Take a mirror over from MirrorMaker 2."""
