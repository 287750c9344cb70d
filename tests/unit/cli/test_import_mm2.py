"""`causeway import-mm2`: which files it writes, which it leaves alone, and what it says."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from causeway.cli.main import main
from causeway.config.flows_file.load import load_flows
from causeway.lab.certificates import ensure_certificates

CANARY = "hunter2-canary"
MM2 = f"""\
clusters = sf, nyc
sf.bootstrap.servers = sf-1:9092
nyc.bootstrap.servers = nyc-1:9092
security.protocol = SASL_SSL
sasl.mechanism = PLAIN
sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="u" password="{CANARY}";
sf->nyc.enabled = true
sf->nyc.topics = orders
tasks.max = 4
errors.tolerance = all
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAUSEWAY_FLOWS", raising=False)
    (tmp_path / "mm2.properties").write_text(MM2)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_dry_run_prints_and_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import-mm2", "mm2.properties", "--dry-run", "--connections", "c.env"]) == 0
    out, err = capsys.readouterr()
    assert files(project) == {"mm2.properties"}
    assert 'topics: ["orders"]' in out
    assert "NOT TAKEN OVER:" in out
    assert "nothing was written" in out
    assert CANARY not in out + err


def test_it_writes_what_causeway_accepts_and_secrets_for_their_owner_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-mm2", "mm2.properties", "--connections", "c.env", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["flows"] == ["sf_to_nyc"]
    assert {row["key"]: row["fate"] for row in told["keys"]}["errors.tolerance"] == "NOT TAKEN OVER"
    assert files(project) == {"mm2.properties", "include/flows.yaml", "c.env"}
    assert load_flows(project / "include/flows.yaml").flows["sf_to_nyc"].topics.include == ("orders",)
    assert CANARY not in (project / "include/flows.yaml").read_text() + json.dumps(told)
    assert CANARY in (project / "c.env").read_text()
    assert stat.S_IMODE((project / "c.env").stat().st_mode) == 0o600


def test_what_it_wrote_is_what_the_command_line_finds(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = ensure_certificates(project, "sf").authority
    with (project / "mm2.properties").open("a") as file:
        file.write(f"ssl.truststore.type = PEM\nssl.truststore.location = {ca}\n")
    assert main(["import-mm2", "mm2.properties", "--connections", "c.env"]) == 0
    for line in (project / "c.env").read_text().splitlines():
        if not line.startswith("#"):
            name, _, value = line.partition("=")
            monkeypatch.setenv(name, value.strip("'"))
    capsys.readouterr()
    assert main(["flows", "--connections"]) == 0, capsys.readouterr().err


def test_nothing_is_overwritten_without_a_word(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "include").mkdir()
    mine = project / "include/flows.yaml"
    mine.write_text("mine")
    assert main(["import-mm2", "mm2.properties", "--connections", "c.env"]) == 2
    assert "is there already; add --overwrite" in capsys.readouterr().err
    assert (mine.read_text(), files(project)) == ("mine", {"mm2.properties", "include/flows.yaml"})
    assert main(["import-mm2", "mm2.properties", "--overwrite"]) == 0
    assert "sf_to_nyc:" in mine.read_text()
    assert main(["import-mm2", "mm2.properties", "--file", "other.yaml"]) == 0
    assert (project / "other.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["none.properties"], "none.properties: can't be read"),
        (["mm2.properties", "--flow", "x"], "--flow: is for --adopt"),
        (["mm2.properties", "--adopt", "--overwrite"], "--adopt: writes no files"),
        (["mm2.properties", "--adopt", "--file", "none.yaml"], "none.yaml: can't be read"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    assert main(["import-mm2", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"causeway: error: {what}")
    assert err.count("\n") == 1


def test_a_flow_that_flows_yaml_does_not_have_cannot_be_adopted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "flows.yaml").write_text(
        "clusters: {a: {connection: kafka_a}, b: {connection: kafka_b}}\nflows: {f: {source: a, target: b}}\n"
    )
    assert main(["import-mm2", "mm2.properties", "--adopt", "--file", "flows.yaml"]) == 2
    assert "between the clusters of one of MirrorMaker 2's" in capsys.readouterr().err


def test_a_folder_that_takes_no_files_is_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "include").write_text("not a folder")
    assert main(["import-mm2", "mm2.properties"]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_doctor_wants_the_file_of_the_flow_it_looks_at(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["import-mm2", "mm2.properties", "--connections", "c.env"]) == 0
    for line in (project / "c.env").read_text().splitlines():
        name, _, value = line.partition("=")
        monkeypatch.setenv(name.removeprefix("export "), value.strip("'"))
    (project / "other.properties").write_text(MM2.replace("nyc", "lon"))
    assert main(["doctor", "sf_to_nyc", "--mm2", "other.properties"]) == 2
    assert "flow = sf->nyc: isn't one of other.properties" in capsys.readouterr().err
