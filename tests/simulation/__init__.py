"""Two simulated clusters in virtual time, and the product's own code between them. See world.py."""
