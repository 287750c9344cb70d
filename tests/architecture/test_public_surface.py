"""What users may import is written in docs/install.md: a name more or less turns this red."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import causeway
from causeway import translate

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "install.md"
FILES_OF_USERS = ("dags", "plugins", "spark_jobs")

Surface = dict[str, set[str]]


def written(title: str) -> Surface:
    """The table below a heading of the page: what the first column names, with the names of the second."""
    sections = re.split(r"^##+ (.+)\n", PAGE.read_text(), flags=re.MULTILINE)
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \|$", sections[sections.index(title) + 1], re.MULTILINE)
    return {place: set(re.findall(r"`(\w+)`", names)) for place, names in rows}


def imported_by_users_files() -> Surface:
    found: Surface = {}
    for path in (path for folder in FILES_OF_USERS for path in sorted((ROOT / folder).rglob("*.py"))):
        for module, name in names_of_the_package(ast.parse(path.read_text())):
            found.setdefault(module, set()).add(name)
    return found


def names_of_the_package(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Of a module that is imported whole, the names that are asked of it."""
    whole: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(each.name.partition(".")[0] == "causeway" for each in node.names), ast.unparse(
                node
            )
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "causeway":
            for each in node.names:
                if is_module(f"{node.module}.{each.name}"):
                    whole[each.asname or each.name] = f"{node.module}.{each.name}"
                else:
                    yield str(node.module), each.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            yield whole[node.value.id], node.attr


def is_module(name: str) -> bool:
    place = ROOT / "include" / Path(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def public(names: Iterator[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_package_itself_says_its_version_and_nothing_else() -> None:
    tree = ast.parse(inspect.getsource(causeway))
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imported = {node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    assert written("Names of the library")["causeway"] == bound == {"__version__"}
    assert imported == set()


def test_the_page_names_what_translate_gives() -> None:
    assert written("Names of the library").keys() == {"causeway", "causeway.translate"}
    assert written("Names of the library")["causeway.translate"] == set(translate.__all__)


def test_translate_defines_nothing_public_that_it_does_not_give() -> None:
    own = (name for name, value in vars(translate).items() if inspect.getmodule(value) is translate)
    assert public(own) <= set(translate.__all__)


def test_the_page_names_what_the_classes_of_translate_have() -> None:
    classes = {name: kind for name in translate.__all__ if inspect.isclass(kind := getattr(translate, name))}
    assert written("Members of its classes") == {
        name: public(iter(dir(kind))) for name, kind in classes.items()
    }


def test_the_page_names_what_dags_and_spark_jobs_import() -> None:
    assert written("Names that dags/ and spark_jobs/ import") == imported_by_users_files()
