"""What Spark's executors are given: the copy, and nothing of the lab, the demo or the command line."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import causeway
from causeway.spark.shipping import SHIPPED, package_zip

ONLY_THE_DRIVER_LOADS = {"copy_job", "groups_job", "jvm", "java", "session", "shipping"}

PACKAGE = Path(causeway.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
}

IMPORTS_THE_EXECUTOR = """
import sys
sys.path.insert(0, sys.argv[1])
import causeway.spark.executor
elsewhere = {name: str(m.__file__) for name, m in sys.modules.items() if name.partition(".")[0] == "causeway"}
print(sorted(name for name, file in elsewhere.items() if not file.startswith(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_zip(tmp_path_factory.mktemp("shipped"))


def names(shipped: Path) -> list[str]:
    with zipfile.ZipFile(shipped) as archive:
        return archive.namelist()


def test_executors_are_given_these_rooms_and_no_other(shipped: Path) -> None:
    given = {name.split("/")[1] for name in names(shipped)}
    assert given == {"__init__.py", "interruption.py", "brokers", "core", "usecases", "spark"} == set(SHIPPED)
    assert len(names(shipped)) > 100
    assert {Path(name).suffix for name in names(shipped)} == {".py"}


def test_the_executor_loads_from_the_zip_alone(shipped: Path) -> None:
    """The real Python of an executor, with the libraries, and the package nowhere but in the zip."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_THE_EXECUTOR, str(shipped)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_nothing_that_executors_reach_imports_what_they_are_not_given(shipped: Path) -> None:
    """Inside functions, too: such an import would fail in the middle of a lane."""
    given = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names(shipped)}
    missing: dict[str, set[str]] = {}
    with zipfile.ZipFile(shipped) as archive:
        for name in archive.namelist():
            if name.startswith("causeway/spark/") and Path(name).stem in ONLY_THE_DRIVER_LOADS:
                continue
            asked = imported(ast.parse(archive.read(name)))
            missing |= {name: lacking} if (lacking := asked - given) else {}
    assert missing == {}


def imported(tree: ast.Module) -> set[str]:
    """Modules of the package that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{each.name}" for each in node.names} & MODULES
    return {name for name in found if name.partition(".")[0] == "causeway"}
