"""The command line, as somebody types it at four in the morning: a process, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.config.values.environment import environment_variable
from causeway.lab.cluster import LabCluster


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Knows the flows of one file, and the clusters under the connections `kafka_<alias>`."""

    folder: Path
    flows_file: Path
    clusters: Mapping[str, LabCluster]

    def run(self, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            input=typed,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment(),
            check=False,
        )

    def told(self, *arguments: str) -> dict[str, Any]:
        """What it prints for machines; it has to be done."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr[-3_000:]
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def timed(self, *arguments: str) -> tuple[dict[str, Any], list[tuple[str, float]]]:
        """What it tells, and each line of progress with the seconds since its start; the last is its end."""
        began, lines = time.monotonic(), list[tuple[str, float]]()
        output = self.folder / "timed.json"
        with (
            output.open("w") as out,
            subprocess.Popen(
                self._command(*arguments, "--json"),
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.folder,
                env=self._environment(),
            ) as process,
        ):
            assert process.stderr is not None
            lines += [(line.rstrip(), time.monotonic() - began) for line in process.stderr]
        lines.append(("", time.monotonic() - began))
        assert process.returncode == 0, [line for line, _ in lines][-20:]
        return json.loads(output.read_text()), lines

    def _command(self, *arguments: str) -> list[str]:
        causeway = [sys.executable, "-m", "causeway.cli.main"]
        return [*causeway, *arguments, "--file", str(self.flows_file)]

    def _environment(self) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "CAUSEWAY"))
        }
        connections = {
            environment_variable(f"kafka_{name}"): cluster.connection_json()
            for name, cluster in self.clusters.items()
        }
        return {**inherited, "HOME": str(self.folder), **connections}
