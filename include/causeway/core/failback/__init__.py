"""Failback, decided: where two clusters diverged, what lies after that place, what one map hands over to the
other."""
