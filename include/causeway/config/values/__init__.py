"""Values as people write them: durations, sizes, moments; and how a wrong one is refused."""
