"""MirrorMaker 2 on the ground of gaps: the same topics, the same damage, and what its mirror shows then.

It has no run that ends: it is ended in order before the damage, started again after it, and judged when the
witness is whole and nothing more has come for a while.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException

from causeway.lab.jars import ensure_jars
from tests.bench.peers.mirror_maker import JARS, LOG4J2, command_line, render
from tests.proofs.chaos.parts.processes import Started, start, wait_until
from tests.proofs.chaos.peer.peer import end_in_order
from tests.proofs.gaps.loss_cases import Case, GapGround, Victim, shown
from tests.support.mirroring import end_offsets

_COPIED_SECONDS = 400.0
_QUIET_SECONDS = 20.0
_ERROR = re.compile(r"^\[[^]]*\] ERROR ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one victim."""

    case: Case
    lost: int
    """Records that the source shows, or showed until retention took them, and the mirror doesn't."""
    repeated: int
    """Records that the mirror shows once more than it should."""
    wrote: int
    """Records appended after the damage."""
    was_told: bool
    """An error in its log that names the topic."""


class MirrorMakerOnGaps:
    def __init__(self, ground: GapGround, folder: Path, say: Callable[[str], None]) -> None:
        self.ground, self._folder, self._say = ground, folder, say
        self._started: list[Started] = []
        self.errors = 0

    def play(self) -> list[Seen]:
        ground = self.ground
        ground.prepare()
        (self._folder / "log4j2.properties").write_text(LOG4J2, encoding="utf-8")
        (self._folder / "mm2.properties").write_text(render(self._settings()), encoding="utf-8")
        first = self._start()
        wait_until(self._has_all_before, "MirrorMaker mirrors all", timeout_seconds=_COPIED_SECONDS)
        self._wait_until_quiet()
        end_in_order(first)
        before = {victim.topic: shown(ground.target, victim.mirror) for victim in ground.victims}
        ground.strike()
        second = self._start()
        wait_until(
            lambda: len(shown(ground.target, f"sf.{ground.witness}")) >= 60,
            "MirrorMaker goes on with the witness",
            timeout_seconds=_COPIED_SECONDS,
        )
        self._wait_until_quiet()
        end_in_order(second)
        log = second.output()
        self.errors = len(_ERROR.findall(log))
        return [self._judge(victim, before[victim.topic], log) for victim in ground.victims]

    def stop(self) -> None:
        for each in self._started:
            each.kill_all()

    def _judge(self, victim: Victim, before: list[str], log: str) -> Seen:
        now, source = shown(self.ground.target, victim.mirror), shown(self.ground.source, victim.topic)
        has = Counter(now)
        told = any(victim.topic in line for line in log.splitlines() if " ERROR " in line)
        seen = Seen(
            case=victim.case,
            lost=sum(1 for value in source if value not in has)
            + (victim.lost if victim.case is Case.RETENTION else 0),
            repeated=sum(count - 1 for count in has.values()),
            wrote=len(now) if victim.case is Case.TARGET_DELETED else len(now) - len(before),
            was_told=told,
        )
        self._say(str(seen))
        return seen

    def _has_all_before(self) -> bool:
        wanted = {victim.mirror: victim.mirrored for victim in self.ground.victims}
        wanted[f"sf.{self.ground.witness}"] = 30
        ends = self._ends()
        return all(ends.get((topic, 0), (0, 0))[1] >= count for topic, count in wanted.items())

    def _ends(self) -> dict[tuple[str, int], tuple[int, int]]:
        """None while MirrorMaker makes its topics."""
        try:
            return end_offsets(self.ground.target, of="sf.gap-")
        except KafkaException:
            return {}

    def _wait_until_quiet(self) -> None:
        seen, since = None, time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            now = self._ends()
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(1)

    def _start(self) -> Started:
        name = f"mirror-maker-{len(self._started) + 1}"
        files = (self._folder / "log4j2.properties", self._folder / "mm2.properties")
        started = start(name, command_line(ensure_jars(JARS), *files), self._folder / f"{name}.log")
        self._started.append(started)
        return started

    def _settings(self) -> dict[str, str]:
        """Defaults, and one replica, because there is one broker."""
        settings = {
            "clusters": "sf, nyc",
            "sf.bootstrap.servers": self.ground.source.bootstrap_servers,
            "nyc.bootstrap.servers": self.ground.target.bootstrap_servers,
            "sf->nyc.enabled": "true",
            "sf->nyc.topics": ", ".join(self.ground.topics),
            "nyc->sf.enabled": "false",
            "replication.factor": "1",
        }
        for topic in ("checkpoints", "heartbeats", "offset-syncs"):
            settings[f"{topic}.topic.replication.factor"] = "1"
        for kind in ("offset", "status", "config"):
            settings[f"{kind}.storage.replication.factor"] = "1"
        return settings
