"""The matrix: any number of cells, played by a few players at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from causeway.lab.cluster import LabCluster
from tests.proofs.proxy.fault_points import Cell

PLAYERS = 4
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Played:
    cell: Cell
    failure: str
    seconds: float


def play(
    cells: Sequence[Cell], source: LabCluster, target: LabCluster, folder: Path, players: int = PLAYERS
) -> dict[str, Played]:
    """By the cells' names. One that fails doesn't stop the others."""
    waiting: SimpleQueue[Cell] = SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    count = min(players, len(cells))
    with ThreadPoolExecutor(max_workers=max(count, 1)) as pool:
        done = [
            pool.submit(_play_from, waiting, source, target, folder / f"player-{number}")
            for number in range(count)
        ]
        return {str(played.cell): played for each in done for played in each.result()}


def _play_from(
    waiting: SimpleQueue[Cell], source: LabCluster, target: LabCluster, folder: Path
) -> list[Played]:
    folder.mkdir(parents=True)
    command = [
        sys.executable,
        "-m",
        "tests.proofs.proxy.player",
        str(source.home),
        str(target.home),
        str(folder),
    ]
    paths = f"{_ROOT / 'include'}:{_ROOT}:{os.environ.get('PYTHONPATH', '')}"
    played: list[Played] = []
    log = folder / "player.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        ) as player,
    ):
        assert player.stdin is not None
        assert player.stdout is not None
        while True:
            try:
                cell = waiting.get_nowait()
            except Empty:
                player.stdin.close()
                return played
            print(cell, file=player.stdin, flush=True)
            answer = player.stdout.readline()
            if not answer:
                player.wait()
                raise AssertionError(f"the player of {cell} ended: {log.read_text()[-3000:]}")
            played.append(Played(cell, *json.loads(answer)))
