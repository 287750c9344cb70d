"""The package as a zip, for executors that don't have it installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import causeway


def package_zip(directory: Path) -> Path:
    """Made anew for each run: what the driver runs is what the executors get."""
    root = Path(causeway.__file__).parent
    target = directory / "causeway-package.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, Path("causeway") / path.relative_to(root))
    return target
