"""Records that the target refuses: parked, let in by a higher limit, or in quarantine; never skipped."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.core.copy.ports import Appended, OutcomeUnknown
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.model.flow import RefusedPolicy
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.core.topics.quarantine import origin_of
from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.cases import BASE_MS, NOBODY, noise
from tests.integration.fidelity.raw_log import FOREVER, RawLog, create
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]
RECORDS = 40
BAD = (7, 8, 30)
LATE_MS = int(time.time() * 1000) + 7_200_000
LARGE = noise(5_000)


def good(n: int) -> Record:
    return Record(n, BASE_MS + n, b"k%d" % n, b"v%d" % n, ((b"h", b"%d" % n),))


# What is refused, how the target's topic is set so that it is, and what of it can be raised.
REFUSED: dict[str, tuple[Callable[[int], Record], dict[str, str], str]] = {
    "too large": (
        lambda n: Record(n, BASE_MS + n, b"k%d" % n, LARGE),
        {"max_message_bytes": "4000"},
        "max.message.bytes",
    ),
    "timestamp out of the window": (
        lambda n: Record(n, LATE_MS + n, b"k%d" % n, b"late"),
        {"message_timestamp_after_max_ms": "3600000"},
        "message.timestamp.after.max.ms",
    ),
    "no key on a compacted topic": (
        lambda n: Record(n, BASE_MS + n, None, b"keyless"),
        {"cleanup_policy": "compact", "segment_ms": FOREVER},
        "",
    ),
}


class Stage:
    """Three topics that the target doesn't take whole, and one that it does."""

    def __init__(
        self, sf: LabCluster, nyc: LabCluster, name: Callable[..., str], policy: RefusedPolicy
    ) -> None:
        self.sf, self.nyc = sf, nyc
        self.topics = {why: name(policy.value.replace("_", "-")) for why in REFUSED}
        self.sound = name("sound")
        self.records = {why: self._records(why) for why in REFUSED}
        for why, topic in self.topics.items():
            create(sf, topic, 1)
            create(nyc, f"sf.{topic}", 1, **REFUSED[why][1])
        create(sf, self.sound, 1)
        with RawLog(sf) as log:
            for why, topic in self.topics.items():
                write(log, topic, self.records[why])
            write(log, self.sound, [good(n) for n in range(RECORDS)])
        topics = [*self.topics.values(), self.sound]
        flow = make_flow(f"refused_{name('f')[2:].replace('-', '_')}", *topics, on_refused=policy)
        self.mirror = Mirror(flow, sf, nyc)

    @staticmethod
    def _records(why: str) -> list[Record]:
        make = REFUSED[why][0]
        return [make(n) if n in BAD else good(n) for n in range(RECORDS)]

    def shown(self, topic: str) -> list[tuple[object, ...]]:
        with RawLog(self.nyc) as log:
            found = log.records(TopicPartition(topic, 0))
        return [(r.timestamp_ms, r.key, r.value, r.headers) for r in found]


def write(log: RawLog, topic: str, records: list[Record]) -> None:
    """In two batches, so that something comes after the first refusal."""
    for half in (records[:20], records[20:]):
        answer = log.append({TopicPartition(topic, 0): encode_batch(half, codec=Codec.LZ4, **NOBODY)})
        assert isinstance(answer[TopicPartition(topic, 0)], Appended)


def seen(records: list[Record]) -> list[tuple[object, ...]]:
    return [(r.timestamp_ms, r.key, r.value, r.headers) for r in records]


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: TopicName) -> Callable[[RefusedPolicy], Stage]:
    return lambda policy: Stage(sf, nyc, topic_name, policy)


def test_by_default_a_refused_record_parks_its_partition_and_no_other(
    stage: Callable[[RefusedPolicy], Stage],
) -> None:
    at = stage(RefusedPolicy.PARK)
    report = at.mirror.run()

    parked = {p.source: p.parked or {} for p in report.parked}
    assert set(parked) == {f"{topic}-0" for topic in at.topics.values()}
    for facts in parked.values():
        assert facts["reason"] == ParkReason.REFUSED
        assert "offset" in facts["facts"]
        assert "on the target" in facts["remedy"] or "cleanup.policy" in facts["remedy"]
    assert at.shown(f"sf.{at.sound}") == seen([good(n) for n in range(RECORDS)])
    for topic in at.topics.values():
        shown = at.shown(f"sf.{topic}")
        assert shown == seen([good(n) for n in range(len(shown))])
        assert len(shown) <= BAD[0]


def test_a_limit_that_can_be_raised_is_raised_and_everything_crosses(
    stage: Callable[[RefusedPolicy], Stage],
) -> None:
    at = stage(RefusedPolicy.RAISE_LIMIT)
    report = at.mirror.run()

    keyless = at.topics["no key on a compacted topic"]
    assert [p.source for p in report.parked] == [f"{keyless}-0"]
    for why, topic in at.topics.items():
        if topic != keyless:
            assert at.shown(f"sf.{topic}") == seen(at.records[why])
            assert [line for line in at.mirror.said if f"raised {REFUSED[why][2]} of sf.{topic}" in line]
    assert report.as_dict()["quarantined"] == 0


def test_quarantine_keeps_what_the_mirror_does_not_take(stage: Callable[[RefusedPolicy], Stage]) -> None:
    at = stage(RefusedPolicy.QUARANTINE)
    report = at.mirror.run()

    assert (report.parked, report.lag) == ([], 0)
    for why, topic in at.topics.items():
        assert at.shown(f"sf.{topic}") == seen([good(n) for n in range(RECORDS) if n not in BAD])
        mine = report.partitions[TopicPartition(topic, 0)]
        assert mine.quarantined == {why: [(7, 9), (30, 31)]}
    _check_quarantine(at)
    _check_map(at)
    verdict = at.mirror.verify()
    assert verdict.unequal == ()
    assert sum(v.quarantined for v in verdict.partitions) == 3 * len(BAD)
    again = at.mirror.run()
    assert (again.records, again.as_dict()["quarantined"]) == (0, 0)


def test_a_quarantine_whose_transaction_died_is_there_once(
    stage: Callable[[RefusedPolicy], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is gone between the append to the quarantine and the end of the transaction."""
    at = stage(RefusedPolicy.QUARANTINE)
    place, whole_end, died = (
        TopicPartition(at.mirror.flow.quarantine_topic, 0),
        LaneTransaction.end,
        list[int](),
    )

    async def end(owner: LaneTransaction, *, commit: bool) -> None:
        if commit and not died and owner.producer.next_sequence(place):
            died.append(owner.producer.epoch)
            raise OutcomeUnknown("nobody knows how it ended")
        await whole_end(owner, commit=commit)

    monkeypatch.setattr(LaneTransaction, "end", end)
    report = at.mirror.run()

    assert (len(died), report.doubts, report.parked, report.lag) == (1, 1, [], 0)
    _check_quarantine(at)
    _check_map(at)
    assert at.mirror.verify().unequal == ()


def _check_quarantine(at: Stage) -> None:
    """Each bad record once, as it was, with its place on the source after its own headers."""
    with RawLog(at.nyc) as log:
        found = log.records(TopicPartition(at.mirror.flow.quarantine_topic, 0))
    kept: dict[tuple[str, int], Record] = {}
    for record in found:
        origin = origin_of([(name.decode(), value) for name, value in record.headers])
        assert origin is not None
        assert dict(record.headers)[b"causeway.source.cluster"] == b"sf"
        assert (origin.source.topic, origin.offset) not in kept
        kept[origin.source.topic, origin.offset] = record
    for why, topic in at.topics.items():
        for n in BAD:
            record, was = kept.pop((topic, n)), at.records[why][n]
            assert (record.timestamp_ms, record.key, record.value) == (was.timestamp_ms, was.key, was.value)
            assert record.headers[: len(was.headers)] == was.headers
            assert dict(record.headers)[b"causeway.refused"] == why.encode()
    assert kept == {}


def _check_map(at: Stage) -> None:
    """What went to quarantine is a hole: each source offset beside it leads to its own record."""
    targets = [TopicPartition(f"sf.{topic}", 0) for topic in at.topics.values()]
    with RawLog(at.nyc) as log:
        runs: dict[TopicPartition, list[MappedRange]] = log.run(
            lambda: log.target.map_runs(at.mirror.flow.map_topic, targets)
        )
        for tp in targets:
            keys = {r.offset: r.key for r in log.records(tp)}
            told = {
                int(run.source_of(TargetOffset(t))): t
                for run in runs[tp]
                for t in range(run.target_first, run.target_next)
            }
            assert sorted(told) == [n for n in range(RECORDS) if n not in BAD]
            assert {n: keys[t] for n, t in told.items()} == {n: b"k%d" % n for n in told}
