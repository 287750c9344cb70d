"""Decides. Pure: no I/O, clock, environment or logging; time, randomness and ids are arguments."""
