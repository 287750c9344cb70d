"""The copy protocol of one lane: look, claim, position, copy, commit.

Its steps are in docs/development/architecture.md, the rules R1 to R9 in docs/development/invariants.md.
"""
