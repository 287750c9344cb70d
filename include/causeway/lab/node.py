"""One broker process: its files, how it is formatted and how it is started."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from causeway.lab import processes
from causeway.lab.broker_settings import node_settings, render_properties
from causeway.lab.certificates import CertificateFiles
from causeway.lab.credentials import scram_record
from causeway.lab.errors import BrokerDied
from causeway.lab.places import class_archive, java_executable, write_whole
from causeway.lab.processes import ProcessIdentity
from causeway.lab.record import ClusterRecord

_FORMAT_SECONDS = 120
_LOG_TAIL_LINES = 6

# Kafka 4 speaks log4j 2, Kafka 3 reload4j; each reads its own file. The process's output is the log.
_LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""
_RELOAD4J = """\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class Node:
    """Node `number` of a cluster, below the cluster's home."""

    cluster: str
    number: int
    home: Path

    @property
    def properties(self) -> Path:
        return self.home / "server.properties"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def scratch(self) -> Path:
        """Java unpacks its native codecs there at each start; a killed broker leaves them."""
        return self.home / "scratch"

    @property
    def log(self) -> Path:
        return self.home / "broker.log"

    def configure(self, record: ClusterRecord, certificates: CertificateFiles | None) -> None:
        """Write what the broker reads, again at each start: settings may change between two."""
        if self.scratch.exists():
            shutil.rmtree(self.scratch)
        self.scratch.mkdir(parents=True)
        settings = node_settings(record, self.number, self.data, certificates)
        write_whole(self.properties, render_properties(settings), mode=0o600)
        write_whole(self.home / "log4j2.properties", _LOG4J2)
        write_whole(self.home / "log4j.properties", _RELOAD4J)

    def format(self, record: ClusterRecord, jars: Path) -> None:
        """Give an empty data directory its cluster id and first users; one that has them stays as it is."""
        if (self.data / "meta.properties").exists():
            return
        users = [f"--add-scram={scram_record(user, word)}" for user, word in record.passwords.items()]
        arguments = ["format", "--cluster-id", record.cluster_id, "--config", str(self.properties), *users]
        with self.log.open("ab") as log:
            done = subprocess.run(
                [*self._java(record, jars), "kafka.tools.StorageTool", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=_FORMAT_SECONDS, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            raise self.died("its data directory could not be formatted")

    def start(self, record: ClusterRecord, jars: Path, *, tied: bool) -> ProcessIdentity:
        command = [*self._java(record, jars), "kafka.Kafka", str(self.properties)]
        return processes.start(command, log_path=self.log, tied=tied)

    def died(self, rule: str) -> BrokerDied:
        return BrokerDied(
            f"lab broker {self.cluster}/{self.number}",
            rule=rule,
            remedy=f"{self.log} ends with: {' | '.join(self.log_tail())}",
        )

    def log_tail(self) -> list[str]:
        """The last lines that say something: Java's stack frames and StorageTool's list of settings don't."""
        if not self.log.exists():
            return ["(no log)"]
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line.strip() for line in lines if line and not line[0].isspace()][-_LOG_TAIL_LINES:]

    def _java(self, record: ClusterRecord, jars: Path) -> list[str]:
        archive = class_archive(jars)
        return [
            java_executable(),
            *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []),
            *record.spec.jvm_options,
            "-Djava.awt.headless=true",
            # Nothing outside of the cluster's home, also when it is killed.
            f"-Djava.io.tmpdir={self.scratch}",
            "-XX:-UsePerfData",
            f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{self.home / 'log4j.properties'}",
            "-cp",
            f"{jars}/*",
        ]
