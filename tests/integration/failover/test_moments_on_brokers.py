"""Moments on real brokers, where record times are odd: the right record, or the safer one with its reason."""

from __future__ import annotations

import pytest

from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import Network, Wire
from causeway.core.failover.start_offset import Reason, StartOffset
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.lab.cluster import LabCluster
from tests.integration.failover.conftest import MakeStage
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.integration.groups.stage import make_topic
from tests.support.inline_flow import delete_records

pytestmark = pytest.mark.integration
HOUR_MS = 3_600_000


def placed(stage: FailoverStage, moment_ms: int, *, clamp: bool = False) -> StartOffset:
    """What the sheet says of the only partition, and that a group would move there."""
    stage.commit("g", {0: 0})
    sheet = stage.sheet(stage.wish(moment_ms, clamp=clamp))
    place = sheet.places[TopicPartition(stage.mirrored, 0)]
    assert [move.after for move in sheet.plan.moves] == ([] if place.at is None else [place.at])
    return place


def mirror(stage: MakeStage, *runs: list[int], **wishes: object) -> FailoverStage:
    made = stage(partitions=1, **wishes)
    for times_ms in runs:
        made.write(times_ms)
        made.run()
    return made


def offset_of(stage: FailoverStage, time_ms: int) -> int:
    return next(offset for _, offset, found_ms, _ in stage.mirrored_records() if found_ms >= time_ms)


def test_a_mirror_that_was_filled_later_than_its_records_were_written(stage: MakeStage) -> None:
    """Each run leaves the end of its transaction, with the mirror's time, before what is older."""
    made = mirror(stage, *([BASE_MS + n for n in range(first, first + 50)] for first in (0, 50, 100)))
    place = placed(made, BASE_MS + 120)
    assert (place.at, place.reasons) == (offset_of(made, BASE_MS + 120), (Reason.MARKER,))
    assert place.source.at == place.at


def test_a_moment_in_a_gap_is_the_next_record_and_after_all_is_the_end(stage: MakeStage) -> None:
    made = mirror(stage, [BASE_MS, BASE_MS + 5 * HOUR_MS])
    assert placed(made, BASE_MS + HOUR_MS).at == 1
    late = placed(made, BASE_MS + 9 * HOUR_MS)
    assert (late.at, late.reasons) == (2, (Reason.PAST_THE_END,))


def test_an_empty_partition(stage: MakeStage) -> None:
    made = stage(partitions=1)
    made.run()
    made.commit("g", {0: 0})
    assert placed(made, BASE_MS).reasons == (Reason.EMPTY,)


def test_times_out_of_order(stage: MakeStage) -> None:
    made = mirror(stage, [BASE_MS, BASE_MS + 9, BASE_MS + 3], [BASE_MS + 4, BASE_MS + 12])
    place = placed(made, BASE_MS + 5)
    assert (place.at, set(place.reasons)) == (1, {Reason.NOT_RISING}), "the first in the order of the log"


def test_a_clock_that_is_ahead(stage: MakeStage) -> None:
    import time

    now_ms = time.time_ns() // 1_000_000
    made = mirror(stage, [now_ms - 60_000, now_ms + HOUR_MS // 2, now_ms - 30_000])
    place = placed(made, now_ms - 40_000)
    assert (place.at, Reason.AHEAD_OF_CLOCK in place.reasons) == (1, True)


def test_log_append_time_on_the_source_is_what_its_readers_saw(stage: MakeStage) -> None:
    made = mirror(stage, [BASE_MS], [BASE_MS], settings={"message_timestamp_type": "LogAppendTime"})
    times_ms = [time_ms for _, _, time_ms, _ in made.mirrored_records()]
    assert min(times_ms) > BASE_MS + HOUR_MS
    assert placed(made, times_ms[1]).at == offset_of(made, times_ms[1])


def test_log_append_time_on_the_target_leaves_it_to_the_source_and_then_to_the_map(
    stage: MakeStage, nyc: LabCluster
) -> None:
    made = stage(partitions=1)
    make_topic(nyc, made.mirrored, 1, message_timestamp_type="LogAppendTime", retention_ms="-1")
    for first in (0, 50):
        made.write([BASE_MS + n for n in range(first, first + 50)])
        made.run()
    place = placed(made, BASE_MS + 60)
    assert (place.at, place.reasons) == (61, (Reason.APPEND_TIME,)), "50, a marker, 10"


def test_records_that_retention_took(stage: MakeStage, nyc: LabCluster) -> None:
    made = mirror(stage, [BASE_MS + n * 1_000 for n in range(100)])
    delete_records(nyc, made.mirrored, 40)
    with pytest.raises(BadInput, match="--clamp earliest"):
        placed(made, BASE_MS + 20_000)
    place = placed(made, BASE_MS + 20_000, clamp=True)
    assert (place.at, Reason.TRIMMED in place.reasons) == (40, True)
    assert placed(made, BASE_MS + 40_000).reasons == (), "the oldest record is of that very moment"


def test_a_moment_before_the_mirror_began(stage: MakeStage) -> None:
    made = mirror(stage, [BASE_MS])
    with pytest.raises(BadInput, match="earlier than the oldest record"):
        placed(made, BASE_MS - 1)


def test_records_without_a_time(stage: MakeStage, sf: LabCluster) -> None:
    made = stage(partitions=1)
    append_timeless(sf, made.stem, 10)
    made.run()
    made.commit("g", {0: 0})
    sheet = made.sheet(made.wish(BASE_MS))
    assert sheet.plan.moves == ()
    assert "carry no time" in sheet.plan.left_alone[0].why
    assert [str(m.after) for m in made.sheet(made.wish(None)).plan.moves] == ["0"], "latest needs no time"


def append_timeless(cluster: LabCluster, topic: str, count: int) -> None:
    network = Network()
    wire = Wire(cluster.endpoint(), network)
    tp = TopicPartition(topic, 0)
    batch = encode_batch(
        [Record(n, -1, None, b"old") for n in range(count)],
        codec=Codec.NONE,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        transactional=False,
    )

    async def work() -> None:
        await wire.connect()
        (node,) = await wire.by_leader([tp])
        await wire.send(AppendRequest({tp: batch}, transactional_id=None, is_v2=False), node)

    try:
        network.run(work)
    finally:
        wire.disconnect()
        network.close()
