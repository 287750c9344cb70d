"""MirrorMaker 2 on the campaign's ground: the same schedule, the same readers, the same comparison.

Where a fault strikes Causeway's driver, executor or workers, it strikes MirrorMaker's process. Two faults
have another shape: a run that takes over is a process that ends when it is asked to, and the next one; a run
that may not take over has no counterpart, because a second MirrorMaker shares the work.

MirrorMaker never ends by itself, and has no word for "caught up": what it has copied is read from the mirror.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from causeway.lab.jars import ensure_jars
from causeway.lab.ports import free_ports
from tests.bench.peers.mirror_maker import JARS, LOG4J2, check_effect, command_line, render
from tests.proofs.chaos.parts.processes import Started, TookTooLong, start, wait_until
from tests.proofs.chaos.parts.readers import Digests
from tests.proofs.chaos.parts.testbed import Ground
from tests.proofs.chaos.parts.writers import TOPICS
from tests.proofs.chaos.proof import Proof, tally_all
from tests.proofs.chaos.schedule import Fault

_QUIET_SECONDS = 3.0
_STUCK_SECONDS = 90.0
_MOST_RESTARTS = 3
_DRAINED_SECONDS = 60.0
_ENDING_SECONDS = 60.0
_PAST_SESSION_SECONDS = 12.0
"""Connect gives a worker up after ten."""

KILLS = frozenset({Fault.WORKER_KILL, Fault.EXECUTOR_KILL, Fault.DRIVER_KILL})


@dataclass(slots=True)
class PeerCampaign(Ground):
    is_exactly_once: bool = False
    mirror: Started | None = None
    starts: int = 0
    restarts_by_hand: int = 0
    """It had stopped copying or had ended, until somebody started it again."""
    not_played: int = 0
    _all: list[Started] = field(default_factory=list)

    def wait_until_copied(self) -> None:
        """As many records as the source has, and nothing more comes but what is written live."""
        wanted = self.writer.committed
        seen, since = -1, time.monotonic()

        def is_quiet() -> bool:
            nonlocal seen, since
            now = self._bursts_seen()
            if now != seen:
                seen, since = now, time.monotonic()
            return self.committed.records >= wanted and time.monotonic() - since > _QUIET_SECONDS

        try:
            self._wait_for_progress(is_quiet)
        except TookTooLong as stuck:  # what it has lost won't come: counted at the end
            self.note(str(stuck))

    # a ground's parts

    def _begin(self) -> None:
        Ground._begin(self)
        (self.folder / "log4j2.properties").write_text(LOG4J2)
        settings = connect_settings(*self._bootstraps(), is_exactly_once=self.is_exactly_once)
        (self.folder / "mm2.properties").write_text(render(settings))

    def _make_ready(self, fault: Fault) -> None:
        if self.mirror is None:
            self.mirror = self._start("first")

    def _strike(self, fault: Fault) -> None:
        assert self.mirror is not None
        if fault in KILLS:
            self._kill_and_start("after kill -9")
        elif fault is Fault.TAKE_OVER:
            end_in_order(self.mirror)
            self.mirror = self._start("after an orderly end")
        elif fault is Fault.FREEZE_PAST_SUCCESSOR:
            self._freeze_past_successor(self.mirror)
        elif fault is Fault.FREEZE_PAST_TIME_OUT:
            self.mirror.send(signal.SIGSTOP)
            self.note(f"froze MirrorMaker for {_PAST_SESSION_SECONDS:.0f} s")
            time.sleep(_PAST_SESSION_SECONDS)
            self.mirror.send(signal.SIGCONT)
        else:
            self.not_played += 1
            self.note("not played: MirrorMaker has nothing like it")

    def _freeze_past_successor(self, old: Started) -> None:
        old.send(signal.SIGSTOP)
        self.note("froze MirrorMaker")
        self.mirror = self._start("beside the frozen one")
        self.wait_until_copied()
        old.send(signal.SIGCONT)
        self.note("woke the frozen MirrorMaker")
        time.sleep(_PAST_SESSION_SECONDS)
        end_in_order(old)

    def _wait_for_progress(self, is_so: Callable[[], bool]) -> None:
        """One that stops copying is started again, as an operator would; that is counted."""
        seen, since = -1, time.monotonic()
        for _ in range(_MOST_RESTARTS):
            while time.monotonic() - since < _STUCK_SECONDS and not self._has_ended():
                if is_so():
                    return
                now = self._bursts_seen()
                if now != seen:
                    seen, since = now, time.monotonic()
                time.sleep(0.05)
            self.restarts_by_hand += 1
            stood_still = f"stood still for {_STUCK_SECONDS:.0f} s"
            self.note(f"MirrorMaker {'ended by itself' if self._has_ended() else stood_still}")
            self._kill_and_start("by hand")
            since = time.monotonic()
        raise TookTooLong("MirrorMaker stands still, however often it is started again")

    def _prove(self) -> Proof:
        source = self.read_source()
        self._wait_until_drained(source)
        assert self.mirror is not None
        end_in_order(self.mirror)
        self._check_variant(self.mirror.output())
        self.note("healed and caught up, or as far as it comes; comparing")
        saw_committed, saw_uncommitted = self.committed.finish(), self.uncommitted.finish()
        uncommitted = tally_all(source, saw_uncommitted)
        return Proof(
            records=sum(map(len, source.values())),
            repeats=uncommitted.repeated,
            committed=tally_all(source, saw_committed),
            uncommitted=uncommitted,
            faults=self.counts,
            hits=self.hits,
            runs=self.starts,
            events=self.events,
            seconds=time.monotonic() - self.began,
        )

    def _stop_mirror(self) -> None:
        for each in self._all:
            each.kill_all()

    # MirrorMaker

    def _check_variant(self, log: str) -> None:
        """Its settings took effect: its clients print their settings."""
        isolation = "read_committed" if self.is_exactly_once else "read_uncommitted"
        check_effect(log, {}, {"isolation.level": isolation})
        writes_in_transactions = re.search(r"transactional\.id = sf-mm2-MirrorSourceConnector", log)
        assert bool(writes_in_transactions) == self.is_exactly_once, "MirrorMaker 2 runs in the other variant"

    def _bootstraps(self) -> tuple[str, str]:
        if self.links is None:
            return self.source.bootstrap_servers, self.target.bootstrap_servers
        return self.links.bootstrap_servers(self.source), self.links.bootstrap_servers(self.target)

    def _start(self, how: str) -> Started:
        self.starts += 1
        name = f"mirror-maker-{self.starts}"
        properties = self.folder / "mm2.properties"
        if self.is_exactly_once:
            properties = _with_listener(properties, name)
        command = command_line(ensure_jars(JARS), self.folder / "log4j2.properties", properties)
        started = start(name, command, self.folder / f"{name}.log")
        self._all.append(started)
        self.note(f"{name} starts ({how})")
        return started

    def _has_ended(self) -> bool:
        return self.mirror is not None and self.mirror.exit_code is not None

    def _kill_and_start(self, how: str) -> None:
        assert self.mirror is not None
        self.mirror.kill_all()
        self.mirror = self._start(how)

    def _bursts_seen(self) -> int:
        """Records but for those that are written live, which never end."""
        files = self.uncommitted.folder.iterdir()
        return sum(file.stat().st_size for file in files if not file.name.startswith("sf.ticker-"))

    def _wait_until_drained(self, source: dict[str, Digests]) -> None:
        """All of the source is there, or nothing has come for a minute."""
        count, since = -1, time.monotonic()
        while time.monotonic() - since < _DRAINED_SECONDS:
            seen = self.committed.seen_so_far()
            if tally_all(source, seen).lost == 0:
                return
            now = sum(map(len, seen.values()))
            if now != count:
                count, since = now, time.monotonic()
            time.sleep(2)


def connect_settings(source: str, target: str, *, is_exactly_once: bool) -> dict[str, str]:
    """Defaults, and what this ground needs; exactly once as Kafka's documentation says.

    After a member has gone, Connect by default waits for five minutes before somebody else gets its tasks;
    here three seconds, in both variants, in MirrorMaker's favour.
    """
    settings = {
        "clusters": "sf, nyc",
        "sf.bootstrap.servers": source,
        "nyc.bootstrap.servers": target,
        "sf->nyc.enabled": "true",
        "sf->nyc.topics": ", ".join(TOPICS),
        "nyc->sf.enabled": "false",
        "replication.factor": "3",
        "nyc.scheduled.rebalance.max.delay.ms": "3000",
        # It always starts a worker for the other direction too, and ends when that one can't make its topics.
        "nyc->sf.heartbeats.topic.replication.factor": "1",
        "nyc->sf.checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "3",
        "heartbeats.topic.replication.factor": "3",
    }
    for store in ("offset", "status", "config"):
        settings[f"nyc.{store}.storage.replication.factor"] = "3"
        settings[f"sf.{store}.storage.replication.factor"] = "1"
    if is_exactly_once:
        settings |= {
            "nyc.exactly.once.source.support": "enabled",
            "sf.consumer.isolation.level": "read_committed",
            "dedicated.mode.enable.internal.rest": "true",
        }
    return settings


def _with_listener(properties: Path, name: str) -> Path:
    """Two processes may be there at the same time: each listens on a port of its own."""
    (port,) = free_ports(1)
    own = properties.with_name(f"{name}.properties")
    own.write_text(f"{properties.read_text()}listeners = http://127.0.0.1:{port}\n")
    return own


def end_in_order(process: Started) -> None:
    """Ask, insist after a while."""
    process.send(signal.SIGTERM)
    try:
        wait_until(
            lambda: process.exit_code is not None, f"{process.name} ends", timeout_seconds=_ENDING_SECONDS
        )
    except TookTooLong:
        process.kill_all()
