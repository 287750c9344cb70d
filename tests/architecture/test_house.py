"""The house's rules that no linter knows: sizes, names, docstrings, what may never be in the repository."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, modules, named, parsed, tracked

CODE = ("include", "dags", "plugins", "spark_jobs")
MOST_LINES_OF_A_MODULE = 350
MOST_LINES_OF_A_FUNCTION = 40
MOST_PARAMETERS = 6
MOST_MODULES_OF_A_WORD = 3
MOST_FILES_OF_A_FOLDER = 20
MOST_BRIDGES = 16
"""Places where code that blocks runs a loop: a number that only falls, to 20. A use case is one coroutine."""
LONGER_MODULES: set[str] = set()
LONGER_FUNCTIONS: set[str] = set()
WIDER_FUNCTIONS = {
    "core/journal/written_records.py ended_record",
    "usecases/copy/blocking_driver.py copy_flow",
    "usecases/doctor/examine.py examine",
    "usecases/failback/adopt_all.py hand_over",
    "usecases/failback/rebuild.py empty_old",
    "usecases/failback/start.py _adopt",
    "usecases/failover/copy_remaining.py drain",
    "usecases/failover/execute.py fail_over",
    "usecases/failover/execute.py preview_failover",
    "usecases/failover/mirror_state.py _partition",
    "usecases/failover/mirror_state.py read_mirror_state",
    "usecases/failover/rollback.py roll_back",
    "usecases/groups/sync.py sync_groups",
    "usecases/repair/accept_gap.py accept_gap",
    "usecases/repair/adopt.py adopt_partition",
    "usecases/repair/adopt.py go_on_at",
    "usecases/repair/record_positions.py record_positions",
    "usecases/repair/restart_topic.py _begin",
    "usecases/repair/restart_topic.py _forget",
    "usecases/takeover/run.py take_over",
}
WIDER_WORDS: set[str] = set()
"""Each list of exceptions can only shrink: what fits the bar has to go from it."""
NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
WHERE_NUMBER_IS_ANOTHER_WORD = {"core/kernel/estimate.py", "core/model/pattern_groups.py"}
"""The figure itself, and a pattern's groups."""

# Written so that this file doesn't hold what it forbids.
NEVER = {
    "a path of one machine": re.compile(r"(?<![\w.$}/~-])/(?:home|Users|root|work)/[\w.]"),
    "a package registry's host": re.compile(
        r"\b(?:pypi[.]org|files[.]pythonhosted[.]org|repo1?[.]maven[.](?:apache[.])?org|"
        r"registry[.]npmjs[.]org|repository[.]apache[.]org|ghcr[.]io|docker[.]io)\b"
    ),
}


def functions(statements: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Through blocks only, never into expressions: a walk over every node takes seconds."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from functions(getattr(statement, block, []))


def of_package(path: Path) -> str:
    return named(path).removeprefix("include/causeway/")


def lines_of(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_there_is_a_house_to_look_at() -> None:
    assert len(modules(*CODE)) > 50
    assert len(tracked()) > 100


def test_modules_are_short() -> None:
    """Every line counts: docstring, imports, comments and blank lines, too."""
    lines = {of_package(path): len(path.read_text().splitlines()) for path in modules(*CODE)}
    assert {name for name, n in lines.items() if n > MOST_LINES_OF_A_MODULE} == LONGER_MODULES


def test_no_folder_is_crowded() -> None:
    """Twenty names are read at a glance."""
    files = Counter(named(path.parent) for path in modules(*CODE, "tests"))
    assert {folder: n for folder, n in files.items() if n > MOST_FILES_OF_A_FOLDER} == {}


def test_functions_are_short() -> None:
    """From `def` to the last line: decorators don't count, signature and docstring do."""
    long = {
        f"{of_package(path)} {node.name}"
        for path in modules(*CODE)
        for node in functions(parsed(path).body)
        if lines_of(node) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == LONGER_FUNCTIONS


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """By place, by name, and `*those`; not the object or the class that a method belongs to."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    given += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    names = [each.arg for each in given]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_functions_have_few_parameters() -> None:
    """Linters don't count `*those`, and have no list by function."""
    wide = {
        f"{of_package(path)} {node.name}"
        for path in modules(*CODE)
        for node in functions(parsed(path).body)
        if len(parameters_of(node)) > MOST_PARAMETERS
    }
    assert wide == WIDER_FUNCTIONS


def test_each_parameter_would_be_counted() -> None:
    (method,) = functions(ast.parse("async def f(self, a, /, b, *those, c, d=1, **rest): pass").body)
    assert parameters_of(method) == ["a", "b", "c", "d", "those", "rest"]


def test_a_private_name_of_one_word_is_at_home_in_few_modules() -> None:
    """`_read` in ten modules says nothing in any of them. Methods count as functions do."""
    homes: dict[str, set[str]] = {}
    for path in modules(*CODE):
        for node in functions(parsed(path).body):
            if re.fullmatch("_[a-z0-9]+", node.name):
                homes.setdefault(node.name, set()).add(of_package(path))
    assert {name for name, where in homes.items() if len(where) > MOST_MODULES_OF_A_WORD} == WIDER_WORDS


def test_few_places_run_a_loop() -> None:
    bridges = Counter({named(path): path.read_text().count("network.run(") for path in modules("include")})
    assert 0 < bridges.total() <= MOST_BRIDGES, +bridges


def test_every_module_is_named_for_what_it_is() -> None:
    vague = {
        named(path)
        for path in modules(*CODE, "tests")
        for part in path.relative_to(ROOT).with_suffix("").parts
        if NAMES_OF_NOTHING & set(part.split("_"))
    }
    assert vague == set()


def test_every_module_says_what_it_is_for() -> None:
    silent = {
        named(path)
        for path in modules(*CODE)
        if parsed(path).body and not (ast.get_docstring(parsed(path)) or "").strip()
    }
    assert silent == set()


def test_layers_hold() -> None:
    """The contracts are in pyproject.toml."""
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert lint is not None, "import-linter isn't installed: make setup"
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("what", NEVER)
def test_the_repository_never_names(what: str) -> None:
    found = [
        f"{named(path)}:{number}: {line.strip()[:120]}"
        for path in tracked()
        if b"\0" not in path.read_bytes()[:4_096]
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if NEVER[what].search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", "cd /" + "home/amy/x"),
        ("a path of one machine", 'open("/' + 'Users/amy")'),
        ("a path of one machine", "(/" + "root/.m2)"),
        ("a package registry's host", "--index-url https://py" + "pi.org/simple"),
        ("a package registry's host", "https://repo1.maven" + ".org/maven2"),
    ],
)
def test_what_is_never_named_would_be_found(what: str, line: str) -> None:
    assert NEVER[what].search(line)


def test_nobody_but_the_figure_itself_judges_by_its_number() -> None:
    """An unknown has no number, and "at least 0" has the number 0: neither is nothing."""
    reads = {
        f"{named(path)}:{node.lineno}"
        for path in modules(
            *(
                f"include/causeway/{layer}"
                for layer in ("core", "usecases", "render", "cli", "airflow", "demo")
            )
        )
        if ".number" in path.read_text()
        and named(path).removeprefix("include/causeway/") not in WHERE_NUMBER_IS_ANOTHER_WORD
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr == "number"
    }
    assert reads == set(), "ask the figure: is_nothing, exactly, dearness (core/kernel/estimate.py)"


@pytest.mark.parametrize("folder", ["dags", "plugins"])
def test_no_file_that_airflow_puts_on_the_path_shadows_a_library(folder: str) -> None:
    """Airflow puts these folders on sys.path, and registers every plugin by its bare stem, at any depth."""
    elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT, ROOT / folder)]
    stems = {path.stem: path for path in modules(folder) if path.stem != "__init__"}
    shadowing = {
        named(path)
        for stem, path in stems.items()
        if stem in sys.stdlib_module_names or PathFinder.find_spec(stem, elsewhere) is not None
    }
    assert shadowing == set()


def test_plugins_and_dags_have_stems_of_their_own() -> None:
    stems = [path.stem for path in modules("dags", "plugins") if path.stem != "__init__"]
    assert len(stems) == len(set(stems))


def test_locks_are_installed_as_they_stand() -> None:
    """A resolver beside a lock looks for what is newer, and refuses it for its missing hash."""
    installs = [
        line.strip()
        for name in ("Makefile", "docker-compose.yaml")
        for line in (ROOT / name).read_text().splitlines()
        if re.search(r"pip install\b.* -r ", line)
    ]
    assert len(installs) == 3
    makefile = (ROOT / "Makefile").read_text()
    assert "AS_LOCKED := --no-deps --require-hashes\n" in makefile
    for line in installs:
        assert "$(AS_LOCKED)" in line or "--no-deps --require-hashes" in line, line
    assert "\t@$(BIN)/pip check\n" in makefile
