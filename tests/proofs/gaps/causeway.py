"""Causeway on the ground of gaps: parked before the first wrong record, then repaired by its own words.

What a run prints as the remedy is run as it is printed, through the command line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from causeway.cli.main import main
from causeway.config.flows_file.load import load_flows
from causeway.core.copy.report import RunReport
from causeway.core.state.parked import ParkReason
from tests.integration.copy.spark_flow import flows_file
from tests.proofs.gaps.loss_cases import Case, GapGround, Victim, shown
from tests.support.inline_flow import topic_ends
from tests.support.mirroring import Mirror

REASONS = {
    Case.RETENTION: ParkReason.SOURCE_GAP,
    Case.SHORTER: ParkReason.SOURCE_RECREATED,
    Case.REGROWN: ParkReason.SOURCE_RECREATED,
    Case.CUT: ParkReason.SOURCE_TRUNCATED,
    Case.CUT_REGROWN: ParkReason.SOURCE_TRUNCATED,
    Case.TARGET_DELETED: ParkReason.TARGET_RECREATED,
}
_COMMAND = re.compile(r"`(causeway (?:accept-gap|restart-topic|reconcile) [^`]*)`")


class GapFailed(AssertionError):
    """A gap that wasn't found, or a remedy that leads nowhere."""


@dataclass(frozen=True, slots=True)
class Said:
    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """`causeway`, with flows.yaml and both clusters' connections."""

    def __init__(self, ground: GapGround, file: Path) -> None:
        self._file = file
        self._connections = {
            "AIRFLOW_CONN_KAFKA_SF": ground.source.connection_json(),
            "AIRFLOW_CONN_KAFKA_NYC": ground.target.connection_json(),
        }

    def __call__(self, *arguments: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self._connections),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            exit_code = main([*arguments, "--file", str(self._file)])
        return Said(exit_code, out.getvalue(), err.getvalue())


class CausewayOnGaps:
    def __init__(self, ground: GapGround, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.ground, self._say = ground, say
        self.name = "gaps_" + ground.witness.rpartition("-")[2]
        file = flows_file(folder, self.name, *ground.topics)
        flow = load_flows(file, shown_as="flows.yaml").flow(self.name)
        self.mirror = Mirror(flow, ground.source, ground.target)
        self.causeway = CommandLine(ground, file)
        self.after_step: Callable[[], None] = lambda: None
        """What may happen in between."""

    def play(self) -> list[str]:
        """Everything that must hold; returns the commands that led on."""
        ground = self.ground
        ground.prepare()
        first = self.mirror.run()
        _must(not first.parked, f"parked before anything happened: {first.parked}")
        self.after_step()
        ground.strike()
        commands = self.find_all()
        self.after_step()
        tried: set[Case] = set()
        for victim in ground.victims:
            self._go_on(commands[victim.topic], thoroughly=victim.case not in tried)
            tried.add(victim.case)
        self._ends_well()
        return list(commands.values())

    def find_all(self) -> dict[str, str]:
        """Each gap is found, by a run and by `status`, and no mirror of a victim got a record."""
        ground = self.ground
        before = topic_ends(ground.target)
        report = self.mirror.run()
        after = topic_ends(ground.target)
        status = self.causeway("status", self.name, "--json")
        _must(status.exit_code == 5, f"status ends with {status.exit_code}: {status.err}")
        told = {each["source"]: each["remedy"] for each in status.json["parked"]}
        commands: dict[str, str] = {}
        for victim in ground.victims:
            place, end = f"{victim.topic}-0", (victim.mirror, 0)
            _must(before.get(end) == after.get(end), f"{victim}: {before.get(end)} became {after.get(end)}")
            parked = _parked(report).get(place)
            _must(parked is not None, f"{victim} wasn't found")
            assert parked is not None
            _must(parked["reason"] == REASONS[victim.case], f"{victim}: {parked}")
            found = _COMMAND.search(parked["remedy"])
            _must(found is not None, f"{victim}: no command in {parked}")
            assert found is not None
            commands[victim.topic] = found[1]
            _must(found[1] in told.get(place, ""), f"{victim}: status says {told.get(place)}")
            self._say(f"{victim.case}: {parked['facts']}")
        witness = shown(ground.target, f"sf.{ground.witness}")
        _must(len(witness) == 60, f"the others didn't go on: {len(witness)} of 60")
        return commands

    def _go_on(self, command: str, *, thoroughly: bool) -> None:
        """As it was printed; thoroughly: also dry, with another range, and again."""
        words = shlex.split(command)[1:]
        if thoroughly:
            self._try_without_effect(command, words)
        done = self.causeway(*words)
        _must(done.exit_code == 0, f"{command}: {done}")
        self._say(done.out.strip())
        self.after_step()
        if thoroughly:
            again = self.causeway(*words)
            _must(again.exit_code == 0, f"{command} again: {again}")
            is_known = "nothing to do" in again.out or "forgotten" in done.out
            _must(is_known, f"{command} again: {again}")

    def _try_without_effect(self, command: str, words: list[str]) -> None:
        dry = self.causeway(*words, "--dry-run")
        _must(dry.exit_code == 0 and "would" in dry.out, f"{command} --dry-run: {dry}")
        if words[0] == "accept-gap":
            self._refuses_any_other_range(words)

    def _refuses_any_other_range(self, words: list[str]) -> None:
        for place in (4, 5):
            other = [*words[:place], str(int(words[place]) + 1), *words[place + 1 :]]
            refused = self.causeway(*other)
            _must(refused.exit_code == 2, f"{other}: {refused}")
            _must(f"FROM {words[4]}, TO {words[5]}" in refused.err, f"{other}: {refused}")

    def _ends_well(self) -> None:
        report = self.mirror.run()
        _must(not report.parked and report.lag == 0, f"still parked: {report.parked}, lag {report.lag}")
        for victim in self.ground.victims:
            seen, wanted = shown(self.ground.target, victim.mirror), self.wanted(victim)
            _must(seen == wanted, f"{victim}: {len(seen)} records on the mirror, not {len(wanted)}")
        verified = self.causeway("verify", self.name)
        _must(verified.exit_code == 0, f"verify: {verified}")
        status = self.causeway("status", self.name, "--json").json
        ledger = {(gap["source_topic"], gap["first"], gap["end"]) for gap in status["accepted_gaps"]}
        _must(ledger == self._lost(), f"the ledger says {ledger}")
        shown_to_people = self.causeway("status", self.name).out
        _must(shown_to_people.count("ACCEPTED ") == len(ledger), shown_to_people)

    def wanted(self, victim: Victim) -> list[str]:
        """What the mirror has to show in the end."""
        now = shown(self.ground.source, victim.topic)
        match victim.case:
            case Case.TARGET_DELETED:
                return now
            case Case.CUT | Case.CUT_REGROWN:
                return victim.before + now[victim.kept :]
            case _:
                return victim.before + now

    def _lost(self) -> set[tuple[str, int, int]]:
        lost: set[tuple[str, int, int]] = set()
        for victim in self.ground.victims:
            if victim.case is Case.RETENTION:
                lost.add((victim.topic, victim.mirrored, victim.mirrored + victim.lost))
            elif victim.case in (Case.CUT, Case.CUT_REGROWN):
                lost.add((victim.topic, victim.kept, victim.mirrored))
        return lost

    def close(self) -> None:
        self.mirror.close()


def _parked(report: RunReport) -> dict[str, dict[str, str]]:
    return {p.source: p.parked for p in report.parked if p.parked}


def _must(holds: object, otherwise: str) -> None:
    if not holds:
        raise GapFailed(otherwise)
