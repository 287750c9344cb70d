"""What commit dfef452 has stored on two clusters, and what it read of it itself."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.facts import Facts
from tests.golden.stored import Golden

FOLDER = Path(__file__).parent / "dfef452"
EXPECTED: dict[str, Facts] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
NYC, SF = Golden(FOLDER / "nyc"), Golden(FOLDER / "sf")
