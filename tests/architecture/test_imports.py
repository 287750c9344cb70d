"""Who may import what, where import-linter has no contract for it; the contracts are in pyproject.toml.

Each list of exceptions can only shrink: one that is gone turns its test red until it is off the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT, modules, named, parsed

PACKAGE = "include/causeway"
CORE_MAY_IMPORT = {
    "__future__", "array", "bisect", "collections", "cramjam", "dataclasses", "datetime", "difflib", "enum",
    "functools", "google_crc32c", "hashlib", "itertools", "json", "re", "shlex", "struct", "types", "typing",
    "uuid", "zlib",
}  # fmt: skip
"""No clock, no file, no chance, no network: what core decides is decided by what it is given."""

CLIENTS = {"kafka", "confluent_kafka"}
BOTH_CLIENTS = {"brokers/admin/acls.py", "brokers/error_map.py"}
"""ACLs are asked for by the one and changed by the other; and errors of both become ours."""

DELETE = {
    "brokers/admin/acls.py",
    "brokers/admin/delete_records.py",
    "brokers/wire/delete_offsets.py",
    "brokers/admin/scratch.py",
}
"""Who may import these is a contract. The lab deletes what is its own."""
_DELETES = re.compile(r"delete_[a-z_]+|(Offset)?Delete[A-Za-z]*Request")


def imported_by(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each module that is imported, with the names that are taken from it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, tuple(alias.name for alias in node.names)


def of_package(path: Path) -> str:
    return named(path).removeprefix(f"{PACKAGE}/")


def borrowed_from_tests(path: Path) -> set[str]:
    found = set[str]()
    for module, names in imported_by(path):
        for full in (module, *(f"{module}.{name}" for name in names)):
            stem = full.rpartition(".")[2]
            if full.startswith("tests.") and stem.startswith("test_") and _is_module(full):
                found.add(full)
    return found


def _is_module(full: str) -> bool:
    return ROOT / f"{full.replace('.', '/')}.py" in modules("tests")


def test_core_imports_what_is_on_its_list_and_nothing_else() -> None:
    imported = {
        module.partition(".")[0] for path in modules(f"{PACKAGE}/core") for module, _ in imported_by(path)
    }
    assert imported - {"causeway"} == CORE_MAY_IMPORT


def test_a_module_that_talks_to_brokers_has_one_client() -> None:
    both = {
        of_package(path)
        for path in modules(f"{PACKAGE}/brokers")
        if {module.partition(".")[0] for module, _ in imported_by(path)} >= CLIENTS
    }
    assert both == BOTH_CLIENTS


def test_only_the_modules_that_are_named_delete() -> None:
    """Elsewhere nobody has a client that could; a contract keeps it so."""
    deleting = {
        of_package(path)
        for path in modules(f"{PACKAGE}/brokers")
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Attribute) and _DELETES.fullmatch(node.attr))
        or (isinstance(node, ast.alias) and _DELETES.fullmatch(node.name))
    }
    assert deleting == DELETE


def test_no_test_is_imported_by_another_module() -> None:
    """What two tests need belongs into a module that is no test."""
    borrowing = {named(path): found for path in modules("tests") if (found := borrowed_from_tests(path))}
    assert borrowing == {}
