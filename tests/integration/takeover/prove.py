"""Histories of MirrorMaker 2, by a seed: lives that are killed or end in order, then Causeway takes over.

Whatever MirrorMaker did twice stays twice; of what Causeway does nothing comes twice or is missing. Each
record of these histories is another one, so that it is known who copied it, and how often.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.lab.cluster import LabCluster
from causeway.lab.ports import free_ports
from causeway.lab.record import ClusterSpec
from tests.integration.takeover.stage import TakeoverStage, write

HISTORIES = 8
_RECORDS = 12_000
_TIME_OUT_SECONDS = 180.0
_QUICK = {
    "nyc.session.timeout.ms": "6000",
    "nyc.heartbeat.interval.ms": "1500",
}
VARIANTS: dict[str, dict[str, str]] = {
    "default": {},
    "without offset syncs": {"emit.offset-syncs.enabled": "false", "emit.checkpoints.enabled": "false"},
    "committing often": {"nyc.offset.flush.interval.ms": "1000"},
    "exactly once": {
        "nyc.exactly.once.source.support": "enabled",
        "sf.consumer.isolation.level": "read_committed",
        "dedicated.mode.enable.internal.rest": "true",
        "nyc.producer.override.transaction.timeout.ms": "10000",
    },
}
Say = Callable[[str], None]


class TakeoverFailed(Exception):
    """A record too many, too few, or in another place."""


@dataclass(slots=True)
class Tally:
    histories: int = 0
    partitions: int = 0
    refused: int = 0
    records: int = 0
    behind_commits: int = 0
    repeated_by_mirror_maker: int = 0


def prove(folder: Path, seed: int, say: Say, histories: int = HISTORIES) -> str:
    tally = Tally()
    source, target = (LabCluster(ClusterSpec(name=n), folder / n, say=say) for n in ("sf", "nyc"))
    try:
        source.start()
        target.start()
        for number in range(histories):
            variant = list(VARIANTS)[number % len(VARIANTS)]
            say(f"takeover: history {number + 1} of {histories}, {variant}, seed {seed}")
            play(source, target, folder / f"history-{number}", f"h{number}", variant, seed + number, tally)
    finally:
        source.stop()
        target.stop()
    say(f"takeover: {tally}, seed {seed}")
    return f"""\
## Taking over from MirrorMaker 2

{tally.histories} histories of a real MirrorMaker 2: with its defaults, without offset syncs, committing each
second, and exactly once. Each has one to three starts, killed or ended. Then come
`causeway import-mm2 --adopt` and a run (seed {seed}).

There were {tally.partitions} partitions with {tally.records:,} records. {tally.behind_commits:,} offsets lay
after a commit of MirrorMaker 2, and Causeway found them. (What MirrorMaker 2 had written without ever
committing is not counted.) {tally.repeated_by_mirror_maker:,} records MirrorMaker 2 had copied twice itself.
Of what Causeway copied nothing is twice, missing or out of order. {tally.refused} partitions were refused.
"""


def play(
    source: LabCluster, target: LabCluster, folder: Path, stem: str, variant: str, seed: int, tally: Tally
) -> None:
    dice = random.Random(seed)
    settings = _QUICK | VARIANTS[variant] | {"listeners": f"http://127.0.0.1:{free_ports(1)[0]}"}
    scene = TakeoverStage(source, target, folder, (f"{stem}-a", f"{stem}-b"), settings=settings)
    scene.write_flows()
    try:
        _live(scene, dice)
        rows = _adopt(scene)
        with scene.mirror() as mirror:
            mirror.run()
        _compare(scene, rows, f"seed {seed} ({variant})", tally)
        tally.histories += 1
    finally:
        scene.close()


def _adopt(scene: TakeoverStage) -> dict[str, dict[str, Any]]:
    """By source. What MirrorMaker left open ends with its time-out; until then that is refused."""
    deadline, rows = time.monotonic() + _TIME_OUT_SECONDS, dict[str, dict[str, Any]]()
    while True:
        code, told, said = scene.adopt()
        if code not in (0, 5):
            raise TakeoverFailed(said)
        found = told["flows"][0]["partitions"]
        rows |= {row["source"]: row for row in found if row["outcome"] != "stands"}
        if not any("a transaction is open" in row["why"] for row in found) or time.monotonic() > deadline:
            return rows
        time.sleep(1)


def _live(scene: TakeoverStage, dice: random.Random) -> None:
    written = 0
    for _life in range(dice.randrange(1, 4)):
        more = dice.randrange(500, _RECORDS // 3)
        for here, _ in scene.pairs:
            numbers = range(written, written + more)
            write(scene.source, here.topic, here.partition, numbers, dice, is_told_apart=True)
        written += more
        before = scene.arrived()
        scene.start_mirror_maker()
        scene.wait_until_copied(before + dice.randrange(1, 2 * more))
        if dice.random() < 0.7:
            scene.kill()
        else:
            scene.end()


def _compare(scene: TakeoverStage, rows: dict[str, dict[str, Any]], where: str, tally: Tally) -> None:
    for here, there in scene.pairs:
        row = rows.get(str(here))
        if row is not None and row["outcome"] == "refused":
            tally.refused += 1
            continue
        source = [content for _, content in scene.sources(here)]
        arrived = scene.targets(there)
        copies = Counter(map(repr, (content for _, content in arrived)))
        firsts: dict[str, int] = {}
        for offset, content in arrived:
            firsts.setdefault(repr(content), offset)
        if list(firsts) != list(map(repr, source)):
            raise TakeoverFailed(f"{where}: {there} isn't {here} in order, each record at least once")
        taken_at = row["target_offset"] if row is not None else 0
        ours = Counter(repr(content) for offset, content in arrived if offset >= taken_at)
        twice = [content for content in ours if copies[content] > 1]
        if twice:
            raise TakeoverFailed(f"{where}: {len(twice)} records of {there} were copied again, as {twice[0]}")
        tally.partitions += 1
        tally.records += len(source)
        tally.repeated_by_mirror_maker += len(arrived) - len(source)
        if row is not None and row["committed"] is not None:
            tally.behind_commits += row["source_offset"] - row["committed"] - 1
