"""Kafka's Java classes in a process of their own, asked by lines."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from causeway.lab.places import java_executable

JARS = "mirror-client-4.3.1"
_SOURCE = Path(__file__).with_name("GroupProbe.java")
_STOP_SECONDS = 20


class JavaSaid(Exception):
    """What a Java class complained of."""


class GroupProbe:
    """One JVM for as long as the tests that need it."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [
                *(java_executable(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"),
                *("-XX:-UsePerfData", "-cp", f"{ensure_jars(JARS)}/*", str(_SOURCE)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def translated(self, target: LabCluster, alias: str, group: str) -> dict[tuple[str, int], int]:
        """`RemoteClusterUtils.translateOffsets`; `MirrorClient` has to say the same."""
        answers = [
            {
                (topic, int(partition)): int(offset)
                for topic, partition, offset, _ in self._ask(what, target.bootstrap_servers, alias, group)
            }
            for what in ("translate", "remote")
        ]
        assert answers[0] == answers[1]
        return answers[0]

    def checkpoint_topics(self, target: LabCluster) -> set[str]:
        return {name for (name,) in self._ask("topics", target.bootstrap_servers)}

    def consume(
        self, cluster: LabCluster, topic: str, group: str, count: int, *, reset: str
    ) -> list[tuple[int, int, str]]:
        """As a member of the group: (partition, offset, value) of so many records, then committed."""
        rows = self._ask("consume", cluster.bootstrap_servers, topic, group, str(count), reset)
        return [(int(partition), int(offset), value) for partition, offset, value in rows]

    def _ask(self, *words: str) -> list[tuple[str, ...]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        rows: list[tuple[str, ...]] = []
        for line in self._process.stdout:
            if line == ".\n":
                return rows
            if line.startswith("error\t"):
                rest = list(iter(self._process.stdout.readline, ".\n"))
                raise JavaSaid(line.removeprefix("error\t") + "".join(rest))
            rows.append(tuple(line.rstrip("\n").split("\t")))
        raise JavaSaid(
            f"the JVM ended with {self._process.wait()}: {Path(self._log.name).read_text()[-2000:]}"
        )
