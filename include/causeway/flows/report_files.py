"""Reports as JSON files: whole or not at all, because others wait for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_report_file(document: Mapping[str, object], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
