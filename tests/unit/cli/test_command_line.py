"""The command line: what it prints where, and with which number it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from causeway import interruption
from causeway.cli.commands import flows, lab
from causeway.cli.main import main
from causeway.cli.parser import parser
from causeway.cli.request import Request
from causeway.render.outcome import Outcome
from tests.support.flows_yaml import flows_yaml

FLOWS = flows_yaml('sf_to_nyc: {source: sf, target: nyc, topics: [orders, "payments-.*"], run_for: 10m}')
PAIR = flows_yaml(
    "sf_to_nyc: {source: sf, target: nyc, topics: [orders], replication.policy: identity}",
    "nyc_to_sf: {source: nyc, target: sf, replication.policy: identity, failback_of: sf_to_nyc}",
)
VERBS = [
    "flows",
    "doctor",
    "groups",
    "plan",
    "run",
    "status",
    "verify",
    "fence",
    "lift",
    "adopt",
    "accept-gap",
    "restart-topic",
    "reconcile",
    "translate",
    "maintain",
    "drift",
    "sync",
    "heartbeat",
    "upstreams",
    "failover",
    "failback",
    "drill",
    "import-mm2",
    "lab up",
    "lab down",
    "lab status",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with a flows.yaml, no lab, no Airflow and no connection."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "flows.yaml").write_text(FLOWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in list(os.environ):
        if name.startswith(("AIRFLOW", "CAUSEWAY_")):
            monkeypatch.delenv(name)
    return tmp_path


def program(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "causeway.cli.main", *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_flows_lists_and_says_that_the_file_is_valid(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["flows"]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "FLOW       CLUSTERS   TOPICS               NAMING  FAILBACK OF  LANES  SCHEDULE  RUNS FOR\n"
        "sf_to_nyc  sf -> nyc  orders, payments-.*  prefix  -               16  by hand   600 s\n"
        "\n"
        "include/flows.yaml is valid (1 flow)\n"
    )
    assert printed.err == ""


def test_flows_prints_json_for_machines(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flows", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["file"] == "include/flows.yaml"
    assert [flow["name"] for flow in printed["flows"]] == ["sf_to_nyc"]
    assert printed["flows"][0]["run_for_seconds"] == 600.0
    assert (printed["flows"][0]["failback_of"], printed["flows"][0]["failback"]) == (None, None)


def test_flows_shows_which_one_is_the_reverse_flow(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pair.yaml").write_text(PAIR)
    assert main(["flows", "--file", "pair.yaml"]) == 0
    there, back = capsys.readouterr().out.splitlines()[1:3]
    assert re.split(r"  +", there)[3:5] == ["identity", "-"]
    assert re.split(r"  +", back)[:5] == ["nyc_to_sf", "nyc -> sf", "orders", "identity", "sf_to_nyc"]
    assert main(["flows", "--file", "pair.yaml", "--json"]) == 0
    flows = json.loads(capsys.readouterr().out)["flows"]
    assert [(flow["failback_of"], flow["failback"]) for flow in flows] == [
        (None, "nyc_to_sf"),
        ("sf_to_nyc", None),
    ]


def test_the_file_is_found_upward_as_the_environment_says_or_as_given(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = project / "dags" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert main(["flows"]) == 0
    for number in range(2):
        if not number:
            monkeypatch.setenv("CAUSEWAY_FLOWS", "one.yaml")
        (deep / "one.yaml").write_text(FLOWS.replace("sf_to_nyc", "one"))
        (deep / "two.yaml").write_text(FLOWS.replace("sf_to_nyc", "two"))
        capsys.readouterr()
        assert main(["flows", *(["--file", "two.yaml"] if number else [])]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("two" if number else "one")


def test_without_a_file_the_remedy_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAUSEWAY_FLOWS", raising=False)
    assert main(["flows"]) == 2
    assert "include/flows.yaml: isn't in" in capsys.readouterr().err


def test_a_mistake_in_the_file_is_one_line_with_file_line_and_field(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "include" / "flows.yaml").write_text(FLOWS.replace("run_for: 10m", "lanes: 0"))
    assert main(["flows"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "causeway: error: include/flows.yaml:5: flows.sf_to_nyc.lanes = 0: must be 1 or more; "
        "write a larger one\n"
    )


@pytest.mark.parametrize(
    "verb",
    ["plan", "run", "status", "verify", "groups", "fence", "lift", "drift", "sync", "heartbeat", "maintain"],
)
def test_an_unknown_flow_is_refused_with_the_nearest_name(
    project: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    because = ["--because", "a test"] if verb in ("fence", "lift") else []
    assert main([verb, "sf_to_nic", *because]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "causeway: error: flow = sf_to_nic: include/flows.yaml has no such flow; "
        "did you mean sf_to_nyc? known: sf_to_nyc\n"
    )


@pytest.mark.parametrize("arguments", [["plan", "x", "--json"], ["plan", "--json", "x"]])
def test_errors_are_objects_for_machines(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err == "", "progress only"
    error = json.loads(printed.out)
    assert (error["error"], error["what"], error["value"], error["exit_code"]) == (
        "UnknownName",
        "flow",
        "x",
        2,
    )
    assert error["message"].startswith("flow = x: ")


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (["translate", "f", "--reverse", "sf.orders:0:1"], {"places": ["sf.orders:0:1"], "reverse": True}),
        (["translate", "f", "a:0:1", "--reverse", "b:0:1"], {"places": ["a:0:1", "b:0:1"], "reverse": True}),
        (["reconcile", "f", "orders", "--because", "x", "3"], {"topic": "orders", "partition": "3"}),
        (["lab", "down", "--forget"], {"forget": True}),
        (["fence", "--topics", "a,b", "f", "--because", "x"], {"flow": "f", "topics": "a,b"}),
        (["lift", "f", "--fence", "12", "--because", "x"], {"flow": "f", "fence": "12"}),
    ],
)
def test_options_may_stand_between_places(words: list[str], known: dict[str, object]) -> None:
    options = vars(parser().parse_args(words))
    assert {name: options[name] for name in known} == known


USAGE = [
    ([], "causeway: the following arguments are required: VERB; see causeway --help"),
    (["flws"], "causeway: there is no verb 'flws'; did you mean flows?"),
    (["lab", "upp"], "causeway lab: there is no verb 'upp'; did you mean up?"),
    (["plan"], "causeway plan: the following arguments are required: FLOW; see causeway plan --help"),
    (["plan", "a", "b"], "causeway: unrecognized arguments: b"),
    (["flows", "--jso"], "causeway: unrecognized arguments: --jso"),
    (["fence", "sf_to_nyc"], "causeway fence: the following arguments are required: --because"),
    (
        ["restart-topic", "sf_to_nyc", "orders"],
        "causeway restart-topic: the following arguments are required: --because",
    ),
    (
        ["accept-gap", "sf_to_nyc", "orders", "0", "x", "9", "--because", "a test"],
        "FROM = x: must be a whole number from 0 to 9223372036854775807; write it in digits",
    ),
    (
        ["reconcile", "sf_to_nyc", "orders", "-1", "--because", "a test"],
        "PARTITION = -1: must be a whole number from 0 to 2147483647",
    ),
    (["fence", "sf_to_nyc", "--because", " "], "--because =  : must be 1 to 500 characters on one line"),
    (
        ["fence", "sf_to_nyc", "--because", "a\nb"],
        "--because = a\\nb: must be 1 to 500 characters on one line",
    ),
    (["lift", "sf_to_nyc", "--because", "x" * 501], "must be 1 to 500 characters"),
    (["lift", "sf_to_nyc", "--because", "x", "--fence", "two"], "--fence = two: must be a whole number"),
    (["fence", "sf_to_nyc", "--because", "x", "--topics", " ,"], "--topics =  ,: must name one topic"),
    (["run", "sf_to_nyc", "--run-for", "10"], "--run-for = 10: must be a duration"),
    (["run", "sf_to_nyc", "--run-for", "0s"], "--run-for = 0s: must be 1s to 24h"),
    (["run", "sf_to_nyc", "--run-for", "1m", "--until-caught-up"], "not allowed with argument --run-for"),
    (["--verbose"], "VERB"),
    (["--file", "nowhere.yaml", "flows"], "nowhere.yaml"),
    (["plan", "sf_to_nyc", "--file", ""], "--file = : names no file"),
    (["restart-topic", "sf_to_nyc", "a b", "--because", "x"], "TOPIC = a b: is no legal name of a topic"),
    (["adopt", "sf_to_nyc", "orders", "0", "9" * 5_000, "--because", "x"], "OFFSET = 999"),
    (["adopt", "sf_to_nyc", "\udcff", "0", "1", "--because", "x"], "TOPIC = \\udcff: is no legal name"),
    (["adopt", "sf_to_nyc", "orders", "0", "--because", "x", "--", "--"], "--: means that no option follows"),
    (["lab", "up", "--nodes", "9"], "invalid choice: 9 (choose from 1, 2, 3, 5)"),
    (["lab", "up", "--clusters", "a,,b"], "--clusters = a,,b: has an empty name"),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    USAGE,
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:40],
)
def test_a_wrong_request_is_one_line_and_two(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """With clusters that are named well and can't be reached: nothing of this gets as far as a connection."""
    for name, port in (("SF", 1), ("NYC", 2)):
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name}", f"kafka://?bootstrap.servers=127.0.0.1%3A{port}")
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("causeway: error: ")
    assert message in printed.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_speaks_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*verb.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert f"usage: causeway {verb}" in text


def test_help_teaches_and_documents_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n  {code} " in text for code in (0, 1, 2, 3, 4, 5, 6, 130))
    assert all(f"causeway {example}" in text for example in ("lab up", "plan sf_to_nyc", "verify sf_to_nyc"))
    assert all(f"    {verb.split()[0]}" in text for verb in VERBS)
    assert max(map(len, text.splitlines())) <= 120


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == "causeway 0.1.0\n"


def _verb_that(monkeypatch: pytest.MonkeyPatch, act: object) -> None:
    monkeypatch.setattr(flows, "flows", act)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_let_a_verb_clean_up_and_end_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    cleaned: list[str] = []

    def interrupted(request: Request) -> Outcome:
        try:
            os.kill(os.getpid(), number)
            interruption.check()
        finally:
            cleaned.append("up")
        raise AssertionError("it goes on")

    _verb_that(monkeypatch, interrupted)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["flows"]) == 130
    assert cleaned == ["up"]
    assert capsys.readouterr().err == "causeway: interrupted; nothing was written\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_defect_is_not_taken_for_a_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python ends with 1 after a traceback, and 1 is what verify says."""

    def broken(request: Request) -> Outcome:
        raise ZeroDivisionError

    _verb_that(monkeypatch, broken)
    assert main(["flows"]) == 6
    text = capsys.readouterr().err
    assert "ZeroDivisionError" in text
    assert text.endswith("please report the lines above\n")


def test_the_exit_code_is_the_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    _verb_that(monkeypatch, lambda request: Outcome(payload={}, text="", exit_code=5))
    assert main(["flows"]) == 5


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "causeway.cli.main", "flows"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, causeway.cli.main, causeway.cli.parser as c; c.parser();"
        "heavy = {'airflow', 'pydantic', 'yaml', 'kafka', 'pyspark', 'confluent_kafka', 'pendulum'};"
        "print(sorted({n.split('.')[0] for n in sys.modules} & heavy))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_the_verbs_of_the_parser_are_functions_of_verbs() -> None:
    options: Namespace = parser().parse_args(["lab", "up", "--clusters", "a"])
    assert options.verb is lab.lab_up
    assert (options.clusters, options.kafka, options.security, options.nodes) == ("a", None, None, None)


# Connections


def lab_file(project: Path) -> Path:
    path = project / ".causeway" / "lab" / "connections.env"
    path.parent.mkdir(parents=True)
    lines = [
        f"AIRFLOW_CONN_KAFKA_{name}='"
        f"""{{"conn_type": "kafka", "extra": {{"bootstrap.servers": "127.0.0.1:{port}"}}}}'\n"""
        for name, port in (("SF", 1111), ("NYC", 2222))
    ]
    path.write_text("# made by the lab\n\n" + "".join(lines))
    return path


def test_a_running_lab_is_asked_after_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lab_file(project)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_NYC", "kafka://?bootstrap.servers=nyc.example%3A9092")
    assert main(["flows", "--connections", "--verbose"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-3:] == [
        "CLUSTER  CONNECTION  BOOTSTRAP SERVERS  SECURITY   FIT",
        "sf       kafka_sf    127.0.0.1:1111     PLAINTEXT  yes",
        "nyc      kafka_nyc   nyc.example:9092   PLAINTEXT  yes",
    ]
    assert f"causeway: sf: connection kafka_sf from the running lab ({path})" in printed.err
    assert "nyc: connection" not in printed.err


def test_where_nobody_set_airflow_up_it_is_not_asked(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its import would leave a folder in the person's home."""
    (project / "home").mkdir()
    process = program("flows", "--connections", "--json", "--verbose")
    out, notes = process.communicate()
    assert process.returncode == 2
    assert "Airflow" not in notes
    problems = [cluster["problem"] for cluster in json.loads(out)["clusters"]]
    assert all("nobody has it" in problem for problem in problems)
    assert list((project / "home").iterdir()) == []


def test_one_unfit_connection_does_not_hide_the_other(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab_file(project)
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_SF", '{"conn_type": "kafka", "extra": {"sasl.pasword": "hunter2-canary"}}'
    )
    assert main(["flows", "--connections"]) == 2
    printed = capsys.readouterr()
    assert "sf       kafka_sf    -                  -          no\n" in printed.out
    assert "nyc      kafka_nyc   127.0.0.1:2222     PLAINTEXT  yes\n" in printed.out
    assert "did you mean sasl.password?" in printed.out
    assert "canary" not in printed.out + printed.err
