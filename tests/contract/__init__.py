"""The same questions to the simulated cluster and to real brokers: what the simulation may be believed."""
