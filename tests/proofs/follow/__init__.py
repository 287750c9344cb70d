"""Following a live source: how long after its birth a record is readable on the target."""
