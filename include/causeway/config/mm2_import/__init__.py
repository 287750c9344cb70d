"""MirrorMaker 2's properties file, read and turned into flows.yaml."""
