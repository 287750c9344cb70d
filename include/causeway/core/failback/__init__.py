"""Failback, decided: where two clusters parted, what lies behind that, what one map tells the other."""
