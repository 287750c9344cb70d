"""What the Tab key offers: asked as a shell asks, with nothing of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.flows_yaml import flows_yaml

FLOWS = flows_yaml(
    "sf_to_nyc: {source: sf, target: nyc, topics: [orders]}",
    "nyc_to_sf: {source: nyc, target: sf, topics: [refunds]}",
)
WHAT_STARTS_SLOWLY = {
    "argcomplete",
    "importlib.metadata",
    "pydantic",
    "yaml",
    "confluent_kafka",
    "kafka",
    "pyspark",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "flows.yaml").write_text(FLOWS)
    return tmp_path


def surroundings(**more: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CAUSEWAY_")}
    programs = Path(sys.executable).parent
    return {**ours, "PATH": f"{programs}:{os.environ['PATH']}", **more}


def offered(line: str, folder: Path) -> list[str]:
    answer = folder / "answer"
    done = subprocess.run(
        [sys.executable, "-m", "causeway"],
        cwd=folder,
        env=surroundings(
            COMP_LINE=line,
            COMP_POINT=str(len(line)),
            _ARGCOMPLETE="1",
            _ARGCOMPLETE_IFS="\n",
            _ARGCOMPLETE_STDOUT_FILENAME=str(answer),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return [word.strip() for word in answer.read_text().splitlines() if word.strip()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("causeway fa", ["failover", "failback"]),
        ("causeway lab ", ["up", "down", "status", "-h", "--help"]),
        ("causeway lab up --kafka ", ["4.3.1", "3.9.2"]),
        ("causeway plan ", ["sf_to_nyc", "nyc_to_sf", "-h", "--help", "--file", "--json", "--verbose"]),
        ("causeway --json lift --because moved s", ["sf_to_nyc"]),
        ("causeway run sf_to_nyc --until-caught-up --to", ["--topics"]),
        ("causeway run sf_to_nyc --until-caught-up --r", ["--report"]),  # not --run-for, which excludes it
    ],
)
def test_words_that_could_come_next(line: str, words: list[str], project: Path) -> None:
    assert sorted(offered(line, project)) == sorted(words)


@pytest.mark.parametrize("text", [None, "flows: ["], ids=["no file", "a mistake in it"])
def test_where_flows_can_not_be_read_none_is_offered(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "broken.yaml").write_text(text)
    assert offered("causeway plan --file broken.yaml s", tmp_path) == []


def test_the_line_of_the_docs_switches_it_on_in_bash(project: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "install.md").read_text()
    line = next(line for line in page.splitlines() if "register-python-argcomplete causeway" in line)
    script = f"""{line.strip()}
        [[ $(complete -p causeway) == *"-F _python_argcomplete "* ]] || exit 9
        COMP_LINE="causeway verify nyc" COMP_POINT=19 COMP_TYPE=9
        _python_argcomplete causeway
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script], cwd=project, env=surroundings(), capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr, done.returncode) == (["nyc_to_sf"], "", 0)


def test_who_asks_for_nothing_waits_for_nothing(tmp_path: Path) -> None:
    """`causeway --help` imports none of what completion, or any verb, needs."""
    script = """
import sys
from causeway.cli.main import main
try:
    main(["--help"])
except SystemExit:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert "causeway.cli.completion" in loaded
    assert loaded & WHAT_STARTS_SLOWLY == set()
