"""`make bench`: Causeway beside MirrorMaker 2, a plain consume-produce loop and the limit of the wire."""
