"""Which extra of the package a verb needs, where the install has left it out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from causeway.core.kernel.errors import BadInput

EXTRA_OF = {
    "airflow": "airflow",
    "cryptography": "lab",
    "psutil": "lab",
    "py4j": "spark",
    "pyspark": "spark",
}
"""By the name that is imported."""


@contextmanager
def extras_named() -> Iterator[None]:
    """:raises BadInput: a library of an extra isn't installed; which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = (missing.name or "").partition(".")[0]
        if library not in EXTRA_OF:
            raise
        remedy = f"install it: pip install 'causeway[{EXTRA_OF[library]}]'"
        raise BadInput(library, rule="isn't installed", remedy=remedy) from missing
