"""Whatever a partition can hold, at wire level on a real broker, mirrored by one run, and equal then."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from causeway.core.copy.ports import Appended
from causeway.core.copy.report import RunReport
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import PrefixNaming
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.cases import OLD_CODECS, Case, Seen, of_old, of_today, with_holes
from tests.integration.fidelity.raw_log import RawLog, create, place_segment
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
LEAST_CASES = 500
GARBAGE = [Record(0, 1, b"aborted", b"nobody may see this")]
PRODUCED, STAMPED, RECODED, SPLIT = "produced", "stamped", "recoded", "split"
TRANSACTIONAL, THINNED, OLD = "transactional", "thinned", "old"
LARGEST_BYTES = 30_000
TOPICS = (PRODUCED, STAMPED, RECODED, SPLIT, TRANSACTIONAL, THINNED, OLD)


@dataclass
class Corpus:
    """What each partition has to show, case by case, in the order in which it lies there."""

    cases: dict[TopicPartition, list[tuple[str, tuple[Seen, ...]]]] = field(default_factory=dict)

    def add(self, tp: TopicPartition, case: Case, stamp: int | None = None) -> None:
        seen = case.seen
        if stamp is not None:
            seen = tuple((stamp, key, value, headers) for _, key, value, headers in case.seen)
        self.cases.setdefault(tp, []).append((case.name, seen))

    def __len__(self) -> int:
        return sum(map(len, self.cases.values()))


@pytest.fixture(scope="module")
def source(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("corpus")


@pytest.fixture(scope="module")
def corpus(source: LabCluster) -> Corpus:
    corpus = Corpus()
    for topic in (PRODUCED, RECODED, SPLIT, TRANSACTIONAL, THINNED):
        create(source, topic, len(Codec))
    create(source, STAMPED, len(Codec), message_timestamp_type="LogAppendTime")
    create(source, OLD, 2 * len(OLD_CODECS))
    with RawLog(source) as log:
        produce(log, corpus)
        produce_in_transactions(log, corpus)
    source.stop()
    place(source, corpus)
    source.start()
    return corpus


def produce(log: RawLog, corpus: Corpus) -> None:
    for codec, case in of_today():
        wanted = [TopicPartition(topic, codec) for topic in (PRODUCED, STAMPED, RECODED)]
        if case.name.startswith(("a thousand", "900 kB in 90")):
            wanted.append(TopicPartition(SPLIT, codec))
        for tp in wanted:
            answer = log.append({tp: case.data})[tp]
            assert isinstance(answer, Appended), (case.name, answer)
            if tp.topic != STAMPED:
                corpus.add(tp, case)
    stamps = {codec: stamps_of(log, TopicPartition(STAMPED, codec)) for codec in Codec}
    for codec, case in of_today():
        corpus.add(TopicPartition(STAMPED, codec), case, next(stamps[codec]))


def stamps_of(log: RawLog, tp: TopicPartition) -> Iterator[int]:
    """The broker's append times, which lie at a fixed place in each batch."""
    return iter([struct.unpack_from(">q", batch, 35)[0] for _, batch in log.batches(tp)])


def produce_in_transactions(log: RawLog, corpus: Corpus) -> None:
    """Each case is committed between another producer's aborted records, whose transaction spans it."""
    good, bad = log.owner("corpus-good"), log.owner("corpus-bad")
    for codec, case in of_today():
        tp = TopicPartition(TRANSACTIONAL, codec)
        for owner, data in ((bad, GARBAGE), (good, None), (bad, GARBAGE)):
            records = data or [Record(n, *seen) for n, seen in enumerate(case.seen)]
            sequence = owner.producer.take_sequence(tp, len(records))
            batch = encode_batch(
                records,
                codec=codec,
                producer_id=owner.producer.producer_id,
                producer_epoch=owner.producer.epoch,
                base_sequence=sequence,
            )
            log.append_as(owner, {tp: batch})
        log.end(good, commit=True)
        log.end(bad, commit=False)
        corpus.add(tp, case)


def place(source: LabCluster, corpus: Corpus) -> None:
    for codec in Codec:
        tp = TopicPartition(THINNED, codec)
        cases = list(with_holes(codec))
        place_segment(source, tp, b"".join(case.data for case in cases))
        for case in cases:
            corpus.add(tp, case)
    for number, (magic, codec) in enumerate((m, c) for m in (0, 1) for c in OLD_CODECS):
        tp = TopicPartition(OLD, number)
        cases = list(of_old(magic, codec))
        place_segment(source, tp, b"".join(case.data for case in cases))
        for case in cases:
            corpus.add(tp, case)


def prepare_targets(nyc: LabCluster) -> None:
    create(nyc, f"corpus.{RECODED}", len(Codec), compression_type="zstd")
    create(nyc, f"corpus.{SPLIT}", len(Codec), max_message_bytes=str(LARGEST_BYTES))


def test_every_record_of_the_corpus_arrives_as_it_was(
    source: LabCluster, nyc: LabCluster, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_targets(nyc)
    flow = make_flow("corpus", *TOPICS, source="corpus", naming=PrefixNaming("corpus"))
    mirror = Mirror(flow, source, nyc)
    report = mirror.run()
    mirror.close()

    assert [(p.source, p.source_next, p.parked) for p in report.parked] == []
    assert (report.outcome, report.lag) == ("caught up", 0)
    with RawLog(nyc) as there:
        for tp, cases in corpus.cases.items():
            compare(there, tp, cases)
        assert {h.codec for c in Codec for h, _ in there.batches(TopicPartition(f"corpus.{RECODED}", c))} == {
            Codec.ZSTD
        }
    assert len(corpus) >= LEAST_CASES
    tell(report, corpus, capsys)


def compare(there: RawLog, tp: TopicPartition, cases: list[tuple[str, tuple[Seen, ...]]]) -> None:
    batches = there.batches(TopicPartition(f"corpus.{tp.topic}", tp.partition))
    assert not [head for head, _ in batches if head.is_log_append_time or head.magic != 2]
    found = there.records(TopicPartition(f"corpus.{tp.topic}", tp.partition))
    shown = [(r.timestamp_ms, r.key, r.value, r.headers) for r in found]
    for name, seen in cases:
        here, shown = shown[: len(seen)], shown[len(seen) :]
        assert tuple(here) == seen, f"{tp}: {name}"
    assert shown == [], tp


def tell(report: RunReport, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    ways: Counter[str] = Counter()
    for partition in report.partitions.values():
        ways["verbatim"] += partition.verbatim_batches
        for why, count in partition.repacked_batches.items():
            for reason in why.split("+"):
                ways[reason] += count
    reasons = {"codec", "holes", "joined", "log_append_time", "old_format", "split"}
    assert reasons <= ways.keys()
    assert ways["verbatim"] > 50
    with capsys.disabled():
        print(
            f"\n{len(corpus)} cases, {report.records:,} records equal; batches: {dict(sorted(ways.items()))}"
        )
