"""Causeway as users start it: spark-submit on spark_jobs/copy_flow.py, with the defaults that ship."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers.contender import Launch, Scene
from tests.integration.copy.spark_flow import BIN, PROJECT, environment

FLOW = "bench"
WORKERS, DRIVER, JVM = "Python workers", "Python driver", "JVM"
_FLOWS = """\
clusters:
  {alias}: {{connection: kafka_{alias}}}
  nyc: {{connection: kafka_nyc}}
flows:
  {flow}:
    source: {alias}
    target: nyc
    topics: [{topics}]
"""


@dataclass(frozen=True, slots=True)
class CausewayOnSpark:
    name: str = "Causeway"
    tree: Path = PROJECT
    """Whose code it is."""

    def prepare(self, scene: Scene) -> Launch:
        return Launch(
            command=command(scene, self.tree),
            environment=spark_environment(scene, self.tree),
            kind_of=kind_of,
        )


def command(scene: Scene, tree: Path = PROJECT) -> list[str]:
    job = str(tree / "spark_jobs" / "copy_flow.py")
    return [
        str(BIN / "spark-submit"),
        job,
        flow_name(scene),
        "--file",
        str(flows_file(scene)),
        "--until-caught-up",
    ]


def flow_name(scene: Scene) -> str:
    """Positions and turns are kept under it: each turn has its own."""
    return f"{FLOW}_{scene.alias}"


def flows_file(scene: Scene) -> Path:
    text = _FLOWS.format(
        alias=scene.alias, flow=flow_name(scene), topics=", ".join(scene.workload.topic_names)
    )
    path = scene.folder / "flows.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def spark_environment(scene: Scene, tree: Path = PROJECT) -> Mapping[str, str]:
    connections = {scene.alias: scene.source.connection_json(), "nyc": scene.target.connection_json()}
    return environment(connections, scene.folder) | {"PYTHONPATH": str(tree / "include")}


def kind_of(command_line: str) -> str:
    if "pyspark.daemon" in command_line or "pyspark/daemon" in command_line:
        return WORKERS
    if "java" in command_line.split(" ", maxsplit=1)[0]:
        return JVM
    return DRIVER if "copy_flow.py" in command_line else "starting"
