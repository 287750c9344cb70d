"""The commands of `causeway`, by subject."""
