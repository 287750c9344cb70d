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
BOTH_CLIENTS = {"brokers/acls.py", "brokers/error_map.py"}
"""ACLs are asked for by the one and changed by the other; and errors of both become ours."""

DELETE = {"brokers/acls.py", "brokers/log_trimming.py", "brokers/offset_deletion.py", "brokers/scratch.py"}
"""Who may import these is a contract. The lab deletes what is its own."""
_DELETES = re.compile(r"delete_[a-z_]+|(Offset)?Delete[A-Za-z]*Request")

BORROW_FROM_TESTS = {
    "tests/dags/test_failback_dag.py": "unit.core.test_failback unit.core.test_rebuild",
    "tests/expiry/stories.py": "takeover.test_what_it_finds",
    "tests/failback/test_home_again.py": "failback.test_episode failback.test_killed",
    "tests/failback/test_protected.py": "failback.test_episode",
    "tests/failback/test_refusals.py": "failover.test_two_at_once",
    "tests/failover/test_held_up.py": "failover.test_two_at_once",
    "tests/failover/test_taken_back_meanwhile.py": "failover.test_two_at_once",
    "tests/golden/test_earlier.py": "golden.test_reads_dfef452",
    "tests/integration/test_doctor_rights.py": "integration.test_least_rights",
    "tests/integration/test_failover_rights.py": "integration.test_least_rights",
    "tests/integration/test_gap_of_a_marker.py": "integration.test_join",
    "tests/integration/test_rights_besides.py": "integration.test_least_rights",
    "tests/integration/test_sync_is_held_up.py": (
        "integration.test_doctor_rights integration.test_least_rights integration.test_upkeep_rights"
    ),
    "tests/integration/test_upkeep_rights.py": (
        "integration.test_doctor_rights integration.test_least_rights"
    ),
    "tests/takeover/test_attacked.py": "takeover.test_what_it_finds",
    "tests/unit/core/test_acl_ledger.py": "unit.core.test_acls",
    "tests/unit/core/test_acls.py": "unit.core.test_flow_names",
    "tests/unit/core/test_doubts.py": "unit.core.test_round_plan",
    "tests/unit/core/test_rebuild.py": "unit.core.test_failback",
    "tests/unit/core/test_repack.py": "unit.core.test_legacy_records",
    "tests/unit/core/test_setting_drift.py": "unit.core.test_flow_names",
    "tests/unit/entrypoints/test_failback_text.py": "unit.core.test_failback unit.core.test_rebuild",
    "tests/unit/entrypoints/test_failback_verb.py": "unit.core.test_failback unit.core.test_rebuild",
    "tests/unit/entrypoints/test_large_sheets.py": "unit.core.test_failback",
    "tests/unit/flows/test_drill_result.py": "unit.entrypoints.test_large_sheets",
    "tests/unit/flows/test_going_home_again.py": "unit.core.test_episode unit.core.test_lost_log",
    "tests/unit/flows/test_last_fence.py": "unit.flows.test_going_home_again",
    "tests/unit/flows/test_left_behind.py": "unit.core.test_episode unit.core.test_lost_log",
    "tests/unit/flows/test_log_health.py": "unit.core.test_lost_log",
    "tests/unit/flows/test_preparing.py": "unit.flows.test_stream",
    "tests/unit/flows/test_recovery_notes.py": "unit.core.test_episode unit.core.test_lost_log",
}
"""What two tests need belongs into a module that is no test. These still have to learn that."""


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
                found.add(full.removeprefix("tests."))
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
    borrowing = {
        named(path): " ".join(sorted(found))
        for path in modules("tests")
        if (found := borrowed_from_tests(path))
    }
    assert borrowing == BORROW_FROM_TESTS
