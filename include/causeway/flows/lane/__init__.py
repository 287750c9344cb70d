"""The copy protocol of one lane: look, claim, position, copy, commit. See ARCHITECTURE.md, Protocol."""
