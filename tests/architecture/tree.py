"""The repository's files, as the tests of this folder ask for them."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def tracked() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


@cache
def modules(*folders: str) -> tuple[Path, ...]:
    return tuple(path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))
