"""MirrorMaker 2's unit scenarios on checkpoints and groups, under its names; tests/integration/groups has the
others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.groups.sync_rules import (
    Committed,
    GroupPlace,
    Outcome,
    SyncRules,
    TargetRange,
    Translated,
    Untranslated,
    judge_place,
)
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import checkpoints_topic, is_internal
from causeway.core.records.mm2_formats import (
    Checkpoint,
    Unreadable,
    decode_checkpoint,
    encode_checkpoint,
    is_news,
)

CHECKPOINT = Checkpoint(
    group="group9",
    target=TopicPartition("source1.topic2", 3),
    source_next=SourceOffset(4),
    target_next=TargetOffset(5),
    metadata="metadata",
)


def test_serde() -> None:
    """CheckpointTest: what is written is what is read, and another version is refused."""
    key, value = encode_checkpoint(CHECKPOINT)
    assert decode_checkpoint(key, value) == CHECKPOINT
    with pytest.raises(Unreadable, match="version 1"):
        decode_checkpoint(key, b"\x00\x01" + value[2:])


def test_is_checkpoint_topic() -> None:
    """MirrorClientTest and ReplicationPolicyTest: with the default separator and with others."""
    assert checkpoints_topic("backup") == "backup.checkpoints.internal"
    assert checkpoints_topic("backup", "_") == "backup_checkpoints_internal"
    assert is_internal("backup_checkpoints_internal")
    assert not is_internal("backup.checkpoints")


@pytest.mark.parametrize("offset", [10, 12])
def test_checkpoint(offset: int) -> None:
    """What a checkpoint says of a group: both offsets, and the group's own metadata."""
    place = GroupPlace(
        group="group9",
        source=TopicPartition("topic1", 2),
        target=TopicPartition("source1.topic1", 2),
        committed=Committed(offset, "its own"),
        translation=Translated(TargetOffset(offset + 1)),
        range=TargetRange(log_start=TargetOffset(0), end=TargetOffset(20), log_end=TargetOffset(20)),
        there=None,
        is_active=False,
        last_checkpoint=None,
    )
    verdict = judge_place(place, SyncRules(flow="f", syncs=False, follows_rewinds=False, now_ms=0))
    assert (verdict.source_next, verdict.target_next) == (offset, offset + 1)
    assert verdict.target == TopicPartition("source1.topic1", 2)
    untranslated = replace(place, translation=Untranslated(Outcome.NEVER))
    nowhere = judge_place(untranslated, SyncRules(flow="f", syncs=True, follows_rewinds=False, now_ms=0))
    assert nowhere.target_next is None, "never -1"


def test_checkpoint_records_monotonic_if_store_rewinds() -> None:
    """What is seen of the mirror may be older than what was seen before; the group's place isn't."""
    behind = replace(CHECKPOINT, target_next=TargetOffset(3))
    ahead = replace(CHECKPOINT, source_next=SourceOffset(6), target_next=TargetOffset(7))
    assert is_news(CHECKPOINT, None, is_exact=False)
    assert not is_news(CHECKPOINT, CHECKPOINT, is_exact=True)
    assert is_news(ahead, CHECKPOINT, is_exact=False)
    assert not is_news(behind, CHECKPOINT, is_exact=False), "an older end of the mirror"
    assert is_news(behind, CHECKPOINT, is_exact=True), "its record lies there now"
    assert is_news(CHECKPOINT, ahead, is_exact=False), "the group went back on the source"


def test_find_consumer_groups() -> None:
    """MirrorMaker 2's default filter, full matches, exclude wins."""
    groups = FlowGroups()
    names = ("billing", "console-consumer-1", "connect-x", "__internal", "causeway.sf_to_nyc")
    assert [name for name in names if groups.selects(name)] == ["billing"]
    assert not FlowGroups(include=("bill",)).selects("billing")
    assert not FlowGroups(include=()).selects("billing")


def test_mirror_checkpoint_connector_enabled() -> None:
    off = FlowGroups(emit_checkpoints=False, emit_offset_syncs=False)
    assert not replace(off, emit_checkpoints=True).is_off
    assert not replace(off, emit_offset_syncs=True).is_off
    assert not replace(off, sync_offsets=True).is_off


def test_mirror_checkpoint_connector_disabled() -> None:
    assert FlowGroups(emit_checkpoints=False, emit_offset_syncs=False).is_off
