"""A cluster's connection: found, checked, and made an endpoint."""
