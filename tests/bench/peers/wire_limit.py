"""The limit as a contender: `tests.bench.limit` in a process of its own, measured like the others."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers.contender import Launch, Scene
from tests.bench.peers.copies import make_copies


@dataclass(frozen=True, slots=True)
class WireLimit:
    name: str = "fetch only + append only"

    def prepare(self, scene: Scene) -> Launch:
        make_copies(scene)
        pairs = [f"{topic}={scene.copy_of(topic)}" for topic in scene.workload.topic_names]
        clusters = [scene.source.bootstrap_servers, scene.target.bootstrap_servers]
        told = str(_answer_file(scene))
        command = [sys.executable, "-m", "tests.bench.limit", *clusters, told, *pairs]
        return Launch(command=command, kind_of=lambda _: "Python")


def limit_seconds(scene: Scene) -> float:
    """Of a turn that is over: what fetching and what appending took, added up."""
    told = json.loads(_answer_file(scene).read_text(encoding="utf-8"))
    return float(told["fetch_seconds"] + told["append_seconds"])


def _answer_file(scene: Scene) -> Path:
    return scene.folder / "limit.json"
