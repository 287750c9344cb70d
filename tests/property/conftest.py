"""A few examples for every run; PROPERTY_EXAMPLES=5000 digs for the rare ones."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "causeway",
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("causeway")
