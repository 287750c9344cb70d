"""What a seed means: the shape of the two clusters, what is written, what goes wrong and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, auto
from random import Random

from causeway.core.model.flow import Start
from causeway.core.offsets.offset_map import MOST_SEGMENTS
from tests.simulation.cluster.loop import START_MS
from tests.simulation.cluster.wire import Weather


class Trouble(StrEnum):
    STORM = auto()
    KILL_WORKER = auto()
    FREEZE_WORKER = auto()
    KILL_DRIVER = auto()
    FREEZE_DRIVER = auto()
    SECOND_RUN = auto()
    TARGET_CRASH = auto()
    SOURCE_CRASH = auto()
    TARGET_FREEZE = auto()
    TARGET_ELECTION = auto()
    SOURCE_ELECTION = auto()
    TARGET_UNCLEAN = auto()
    SOURCE_UNCLEAN = auto()
    COORDINATOR_MOVES = auto()
    OFFSETS_EXPIRE = auto()
    IDS_EXPIRE = auto()
    PRODUCERS_FORGOTTEN = auto()
    FOREIGN_WRITER = auto()
    FOREIGN_TRANSACTION = auto()
    COMPACTION = auto()
    RETENTION = auto()
    FENCE = auto()
    OTHER_LANES = auto()
    TARGET_DEPOSED = auto()
    SOURCE_DEPOSED = auto()
    ADOPT = auto()
    SMALL_MAP = auto()


_SETTLING_SHARE, _DEPOSED_SHARE, _SMALL_MAP_SHARE = 0.4, 0.4, 0.1
_RARE = {
    Trouble.FOREIGN_WRITER,
    Trouble.FOREIGN_TRANSACTION,
    Trouble.RETENTION,
    Trouble.SOURCE_UNCLEAN,
    Trouble.OFFSETS_EXPIRE,
    Trouble.IDS_EXPIRE,
}
"""Each of these can bring a partition to a halt, or is about a week without a run."""
_APART = {Trouble.TARGET_DEPOSED, Trouble.SOURCE_DEPOSED, Trouble.ADOPT, Trouble.SMALL_MAP}
"""Drawn apart: the first two only where there is another node, adoptions where commands are the theme."""


@dataclass(slots=True, kw_only=True)
class Scenario:
    seed: int
    is_v2: bool
    partitions: int
    lanes: int
    source_nodes: int
    target_nodes: int
    records: int
    seconds: float
    transaction_bytes: int
    transaction_seconds: float
    lane_seconds: float
    timeout_ms: int
    most_epochs: int
    most_batches: int
    repeats: float
    weather: Weather
    source_transactions: float
    most_segments: int = MOST_SEGMENTS
    """Of a run of the map: with few, transactions have many."""
    settles: bool = False
    has_one_successor: bool = False
    """No run takes over from one that is at work."""
    troubles: list[tuple[float, Trouble]] = field(default_factory=list)
    start: Start = field(default_factory=lambda: Start("earliest"))
    first_run_at: float | None = None
    """None: at once."""
    grows_at: float | None = None
    """When the topic gets another partition; None: never."""
    refused_lookups: float = 0.0
    """Of the questions by time, how many the source's brokers refuse."""


def scenario_of(seed: int) -> Scenario:
    random = Random(seed * 7919 + 1)
    seconds = random.choice((3.0, 6.0, 10.0))
    made = Scenario(
        seed=seed,
        is_v2=random.random() < 0.6,
        partitions=random.choice((1, 1, 1, 2, 3)),
        lanes=random.choice((1, 1, 2, 3)),
        source_nodes=random.choice((1, 2)),
        target_nodes=random.choice((1, 1, 2, 3)),
        records=random.choice((20, 40, 80)),
        seconds=seconds,
        transaction_bytes=random.choice((200, 600, 2_000, 1 << 20)),
        transaction_seconds=random.choice((0.01, 0.1, 0.5)),
        lane_seconds=random.choice((0.2, 1.0, 5.0)),
        timeout_ms=random.choice((400, 2_000, 10_000)),
        most_epochs=random.choice((3, 8, 32_766)),
        most_batches=random.choice((1, 3, 1_000)),
        repeats=random.choice((0.0, 0.0, 0.1, 0.4)),
        weather=_weather(random),
        source_transactions=random.choice((0.0, 0.3, 0.9)),
    )
    made.troubles = sorted(_troubles(random, seconds) + _deposed(made) + _small_map(made))
    made.most_segments = Random(seed * 67_867_979 + 9).choice((1, 2, MOST_SEGMENTS))
    made.settles = Random(seed * 104_729 + 3).random() < _SETTLING_SHARE
    if not made.is_v2 and any(trouble is Trouble.TARGET_UNCLEAN for _, trouble in made.troubles):
        made.settles = False  # nothing is settled there, and v1 has trouble enough of its own
    return made


def _deposed(made: Scenario) -> list[tuple[float, Trouble]]:
    random, found = Random(made.seed * 49_979_687 + 5), []
    for nodes, trouble in (
        (made.source_nodes, Trouble.SOURCE_DEPOSED),
        (made.target_nodes, Trouble.TARGET_DEPOSED),
    ):
        if nodes > 1 and random.random() < _DEPOSED_SHARE:
            found += [(random.uniform(0, made.seconds), trouble) for _ in range(random.choice((1, 2, 4)))]
    return found


def _small_map(made: Scenario) -> list[tuple[float, Trouble]]:
    random = Random(made.seed * 86_028_121 + 13)
    is_so = random.random() < _SMALL_MAP_SHARE
    return [(random.uniform(0, made.seconds), Trouble.SMALL_MAP)] if is_so else []


def settling_scenario_of(seed: int) -> Scenario:
    """Workers die, connections break, and each time one successor comes in time: what settling is for."""
    random = Random(seed * 15_485_863 + 11)
    made = scenario_of(seed)
    made.is_v2 = made.settles = made.has_one_successor = True
    made.repeats, made.timeout_ms = 0.0, 60_000
    made.weather.late = made.weather.again = made.weather.silent = 0.0
    made.weather.slow = 0.0  # a dead worker's claim would arrive after its successor's, and abort
    made.transaction_seconds = random.choice((0.05, 0.2, 0.5))
    kinds = random.choice(((Trouble.KILL_WORKER,), (Trouble.KILL_WORKER, Trouble.STORM)))
    made.troubles = _kills(random, made.seconds, kinds)
    return made


def settling_anyway_scenario_of(seed: int) -> Scenario:
    """The same in a world where everything else goes wrong, too."""
    random = Random(seed * 32_452_843 + 7)
    made = scenario_of(seed)
    made.is_v2 = made.settles = True
    made.transaction_seconds = max(made.transaction_seconds, 0.1)
    if any(trouble is Trouble.FENCE for _, trouble in made.troubles):
        made.weather.again = 0.0  # a fence that is sent again after its lift stands, and rightly
    made.troubles = sorted(made.troubles + _kills(random, made.seconds, (Trouble.KILL_WORKER,)))
    return made


def adopting_scenario_of(seed: int) -> Scenario:
    """Commands set positions, and sleep while their fences are lifted; no cluster loses anything."""
    random = Random(seed * 86_028_121 + 13)
    made = scenario_of(seed)
    made.settles = False  # after a settled tail a partition doesn't stand where its position says
    kinds = random.choice(((Trouble.KILL_WORKER,), (Trouble.KILL_WORKER, Trouble.STORM)))
    adoptions = [(random.uniform(0.2, made.seconds), Trouble.ADOPT) for _ in range(random.choice((1, 2, 4)))]
    made.troubles = sorted(adoptions + _kills(random, made.seconds, kinds))
    return made


def starting_scenario_of(seed: int) -> Scenario:
    """Where partitions begin: by each start rule, in a source that has records, with growth, deaths in the
    first rounds, positions that expire at any time, and two runs at once. Nothing that excuses a park."""
    random = Random(seed * 67_867_967 + 13)
    made = scenario_of(seed)
    made.partitions = random.choice((1, 2, 3))
    made.start = random.choice(
        (
            Start("latest"),
            Start("latest"),
            Start("earliest"),
            Start("timestamp", timestamp_ms=START_MS + random.randint(0, made.records)),
        )
    )
    made.first_run_at = random.uniform(0, made.seconds * 0.6)
    made.grows_at = random.choice((None, random.uniform(0, made.seconds)))
    made.refused_lookups = random.choice((0.0, 0.5))
    made.settles = False
    made.troubles = sorted(
        (random.uniform(made.first_run_at, made.seconds), kind)
        for kind in _OF_STARTS
        if random.random() < 0.6
        for _ in range(random.choice((1, 2, 4)))
    )
    return made


_OF_STARTS = (
    Trouble.OFFSETS_EXPIRE,
    Trouble.KILL_WORKER,
    Trouble.KILL_DRIVER,
    Trouble.FREEZE_DRIVER,
    Trouble.SECOND_RUN,
    Trouble.SOURCE_CRASH,
    Trouble.SOURCE_ELECTION,
    Trouble.TARGET_CRASH,
    Trouble.COORDINATOR_MOVES,
    Trouble.OTHER_LANES,
)


def _kills(random: Random, seconds: float, kinds: tuple[Trouble, ...]) -> list[tuple[float, Trouble]]:
    times = sorted(random.uniform(0.3, seconds) for _ in range(random.randint(2, 10)))
    return [(at, random.choice(kinds)) for at in times]


def _weather(random: Random) -> Weather:
    weather = Weather(most=random.choice((0.002, 0.01, 0.05)), latest=random.choice((0.3, 2.0, 8.0)))
    for kind in ("reset_before", "reset_after", "late", "again", "slow"):
        setattr(weather, kind, random.choice((0.0, 0.01, 0.04)))
    weather.silent = random.choice((0.0, 0.0, 0.003))
    return weather


def _troubles(random: Random, seconds: float) -> list[tuple[float, Trouble]]:
    if random.random() < 0.1:
        return []
    kinds = [t for t in Trouble if t not in _APART and random.random() < (0.1 if t in _RARE else 0.25)]
    found = [
        (random.uniform(0.0, seconds), kind) for kind in kinds for _ in range(random.choice((1, 1, 2, 4)))
    ]
    return sorted(found)
