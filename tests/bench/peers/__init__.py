"""Who is measured, a module each: how it is started, and what its processes are."""
