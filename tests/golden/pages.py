"""The pages of docs/ that are made from the code.

    python -m tests.golden.pages        writes those that are stale

They are checked in, so that people read them without running anything. test_pages.py says which one is stale.
This is in tests, not in the package: nothing that an operator installs needs it. It is in the room of
surface.py, which records what the same parser says: both hold what is checked in to what the code says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.golden import command_line_page, configuration_page, exit_codes_page

ROOT = Path(__file__).parents[2]
COMMAND = "make docs"
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/configuration.md": configuration_page.page,
    "docs/command-line.md": command_line_page.page,
    "docs/reference/exit-codes.md": exit_codes_page.page,
}


def is_stale(name: str, root: Path = ROOT) -> bool:
    path = root / name
    return not path.is_file() or path.read_text(encoding="utf-8") != PAGES[name]()


def main(root: Path = ROOT) -> None:
    stale = [name for name in PAGES if is_stale(name, root)]
    for name in stale:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGES[name](), encoding="utf-8")
        print(f"written: {name}")
    if not stale:
        print("all generated pages say what the code says")


if __name__ == "__main__":
    main()
