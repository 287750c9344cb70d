"""What executors load, as a zip, for those that don't have the package installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import causeway

SHIPPED = ("__init__.py", "interruption.py", "brokers", "core", "usecases", "spark")
"""All that `causeway.spark.executor` can reach. The lab, the demo, the command line and the DAGs stay."""


def package_zip(directory: Path) -> Path:
    """Made again for each run: what the driver runs is what the executors get."""
    root = Path(causeway.__file__).parent
    target = directory / "causeway-package.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for name in SHIPPED for path in _modules(root / name)):
            archive.write(path, Path("causeway") / path.relative_to(root))
    return target


def _modules(place: Path) -> list[Path]:
    return [place] if place.is_file() else list(place.rglob("*.py"))
