"""The copy, decided: lanes, rounds, repacking, what a lane may do next, and the report of a run."""
