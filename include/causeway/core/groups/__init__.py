"""Consumer groups, decided: which offset the target holds for a group, and why not."""
