"""A flow run as users run it: `spark-submit` on spark_jobs/copy_flow.py, or the `causeway` command.

Connections travel in the environment, as they do from Airflow; nothing else of the caller's does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.scratch import SCRATCH

PROJECT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
_SECONDS = 240
_FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  NAME:
    source: sf
    target: nyc
    topics: [TOPICS]
    lanes: 2
"""


def flows_file(folder: Path, name: str, *topics: str) -> Path:
    path = folder / "flows.yaml"
    path.write_text(_FLOWS.replace("NAME", name).replace("TOPICS", ", ".join(topics)), encoding="utf-8")
    return path


def environment(connections: Mapping[str, str], home: Path) -> dict[str, str]:
    """What a user's shell would hold; `connections` are AIRFLOW_CONN_* by alias."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", *SCRATCH) if name in os.environ}
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    ours = {"PATH": path, "HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return kept | ours | {f"AIRFLOW_CONN_KAFKA_{alias.upper()}": text for alias, text in connections.items()}


def submit_command(flow: str, file: Path, *options: str, conf: Mapping[str, str] | None = None) -> list[str]:
    settings = [part for key, value in (conf or {}).items() for part in ("--conf", f"{key}={value}")]
    master = [] if "spark.master" in (conf or {}) else ["--master", "local[2]"]
    job = str(PROJECT / "spark_jobs" / "copy_flow.py")
    return [str(BIN / "spark-submit"), *master, *settings, job, flow, "--file", str(file), *options]


def finished(
    command: list[str], environ: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=dict(environ), cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
