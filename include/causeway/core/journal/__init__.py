"""The journal of failovers: its records, what they add up to, and what a run still has to do."""
