"""Each command that is printed in an episode, typed as it stands; and two who type at once."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from causeway.core.kernel.errors import BadInput, FlowHeld
from causeway.usecases.failback import start
from causeway.usecases.failback.export import export_tails
from causeway.usecases.failback.journal_store import begin_run, newest_failback
from causeway.usecases.failback.start import FailedBack
from tests.integration.failback.stage import FailbackStage
from tests.integration.failover.command_line import CommandLine
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
WHY = ("--because", "a flood")


def typed_in(line: str) -> str:
    """The command that it names first."""
    found = re.search("`(causeway [^`]+)`", line)
    return found[1] if found else ""


class Silent:
    """A cluster at an address where nobody answers."""

    def connection_json(self) -> str:
        settings = {"bootstrap.servers": "127.0.0.1:1"}
        return json.dumps({"conn_type": "kafka", "extra": settings})


class Operator:
    """Types commands at a flow that was failed over."""

    def __init__(self, stage: FailbackStage, folder: Path, clusters: dict[str, Any]) -> None:
        self.flow, self.reverse = stage.forward.flow.name, stage.reverse.flow.name
        file = folder / "flows.yaml"
        same = (
            f"replication.policy: identity, lanes: {stage.forward.flow.lanes}, groups: ['{stage.stem}[.].*']"
        )
        file.write_text(
            "clusters:\n  sf: {connection: kafka_sf}\n  nyc: {connection: kafka_nyc}\nflows:\n"
            f"  {self.flow}: {{source: sf, target: nyc, topics: [{stage.stem}], {same}}}\n"
            f"  {self.reverse}: {{source: nyc, target: sf, failback_of: {self.flow}, {same}}}\n"
        )
        self.line = CommandLine(folder, file, clusters)

    def type(self, *words: str) -> tuple[int, str]:
        done = self.line.run(*words)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, (done.stdout or done.stderr).rstrip()

    def next(self, name: str = "") -> dict[str, Any]:
        return self.line.told("next", name or self.flow)

    def type_what_is_printed(self, line: str) -> tuple[int, str]:
        words = shlex.split(typed_in(line))
        assert words[0] == "causeway"
        return self.type(*words[1:])


@pytest.fixture
def operator(parted: FailbackStage, tmp_path: Path) -> Operator:
    return Operator(parted, tmp_path, {"sf": parted.old, "nyc": parted.new})


def test_from_the_failover_to_home_every_command_that_is_printed_is_right(
    parted: FailbackStage, operator: Operator, tmp_path: Path
) -> None:
    flow, reverse = operator.flow, operator.reverse
    away = operator.next()
    assert (away["stage"], away["command"]) == ("failed over", f"causeway failback {flow} --resume")

    code, said = operator.type("failback", flow, "--resume", "--yes")
    assert (code, typed_in(said.splitlines()[-1])) == (0, f"causeway failback {flow} --home")

    code, said = operator.type("status", flow)
    assert code == 0
    assert "PARKED" not in said
    assert "`causeway adopt" not in said
    assert "lift" not in said
    assert "RESTING since" in said.splitlines()[-2]
    assert typed_in(said.splitlines()[-1]) == f"causeway failback {flow} --home"
    assert operator.next(reverse) == operator.next(), "asked of either, it is one episode"

    before = parted.fences()
    run = away["what"].split()[1]
    for words in (("lift", flow, *WHY), ("failover", flow, "--rollback", run, "--yes")):
        code, said = operator.type(*words)
        assert (code, typed_in(said)) == (2, f"causeway failback {flow} --home"), said
    code, said = operator.type("adopt", flow, parted.stem, "0", "5", *WHY)
    assert (code, typed_in(said)) == (4, f"causeway next {flow}"), said
    assert parted.fences() == before
    code, said = operator.type("failover", flow, "--at", "latest", "--yes")
    assert ("was done already" in said, "--rollback" in said) == (True, False), said
    assert (code, typed_in(said.splitlines()[-1])) == (0, f"causeway failback {flow} --home")

    silent = Operator(parted, tmp_path, {"sf": Silent(), "nyc": parted.new})
    assert silent.next()["stage"] == "resting", "the target is enough"

    assert operator.type("fence", flow, *WHY)[0] == 0
    code, said = operator.type("failback", flow, "--home", "--yes", "--still", "1s")
    last = said.splitlines()[-1]
    assert (code, "NOT YET: fenced" in last, "a flood" in last) == (4, True, True), said
    assert operator.next()["stage"] == "fenced"
    assert operator.type_what_is_printed(last)[0] == 0
    code, said = operator.type("failback", flow, "--home", "--yes")
    assert (code, typed_in(said.splitlines()[-1])) == (0, f"causeway run {flow}"), said
    assert operator.next()["stage"] == "home, not running"

    returned = newest_failback(parted.ways)[0]
    assert returned is not None
    too_late = (
        ("failover", flow, "--rollback", run, "--yes"),
        ("failover", reverse, "--rollback", str(returned.facts["moved"]), "--yes"),
    )
    for late in too_late:
        code, said = operator.type(*late)
        assert (code, typed_in(said)) == (2, f"causeway next {flow}"), said
    code, said = operator.type("failback", flow, "--home", "--dry-run")
    assert (code, typed_in(said.splitlines()[-1])) == (0, f"causeway run {flow}"), said
    assert parted.fences() == (None, returned.stand_by_words), "nothing was done"

    code, said = operator.type("status", reverse)
    assert (code, "`causeway adopt" in said, "`causeway lift" in said) == (0, False, False), said
    code, said = operator.type("lift", reverse, *WHY)
    assert (code, "mirrors, so the other rests" in said) == (2, True), said
    assert parted.forward.run().records == 0
    assert operator.next()["stage"] == "mirroring"


def test_of_two_failbacks_that_begin_in_one_moment_the_first_in_the_journal_goes_on(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and both have found nobody."""
    real, others = begin_run, list[Any]()

    async def slowly(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(start, "begin_run", real)
        others.append(meanwhile(parted.resume))
        return await real(*arguments, **named)

    monkeypatch.setattr(start, "begin_run", slowly)
    with pytest.raises(BadInput, match="was begun, or goes on, by a test") as told:
        parted.resume()
    first = others[0]
    assert isinstance(first, FailedBack)
    assert typed_in(str(told.value)) == f"causeway failback {parted.forward.flow.name} --resume"
    assert newest_failback(parted.ways)[0] == first.run
    assert parted.fences() == (first.run.fence_words, None)
    parted.reverse.run()
    assert parted.come_home().not_yet == ()


def test_who_goes_on_with_a_failback_that_is_at_work_ends_where_it_ends(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command, typed by two; the second one finds the first one's run."""
    real, others = export_tails, list[Any]()

    async def slowly(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(start, "export_tails", real)
        others.append(meanwhile(parted.resume))
        return await real(*arguments, **named)

    monkeypatch.setattr(start, "export_tails", slowly)
    with pytest.raises(FlowHeld, match=r"was lifted by a test at .*: failback .*run the same command again"):
        parted.resume()
    assert any("going on with failback" in line and "begun by a test" in line for line in parted.said)
    assert isinstance(others[0], FailedBack)
    assert parted.fences() == (others[0].run.fence_words, None)
    assert parted.resume().was_done
