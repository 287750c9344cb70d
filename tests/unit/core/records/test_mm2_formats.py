"""Checkpoints and offset syncs, byte for byte as MirrorMaker 2 writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.naming import checkpoints_topic, offset_syncs_topic
from causeway.core.records.mm2_formats import (
    Checkpoint,
    OffsetSync,
    Unreadable,
    decode_checkpoint,
    decode_offset_sync,
    encode_checkpoint,
    encode_offset_sync,
)

CHECKPOINT = Checkpoint(
    group="g1",
    target=TopicPartition("A.t", 3),
    source_next=SourceOffset(100),
    target_next=TargetOffset(42),
)
SYNC = OffsetSync(
    source=TopicPartition("t", 3), source_offset=SourceOffset(100), target_offset=TargetOffset(42)
)


def test_the_vectors_of_mirror_maker() -> None:
    key, value = encode_checkpoint(CHECKPOINT)
    assert key.hex() == "000267310003412e7400000003"
    assert value.hex() == "00000000000000000064000000000000002a0000"
    key, value = encode_offset_sync(SYNC)
    assert key.hex() == "00017400000003"
    assert value.hex() == "0000000000000064000000000000002a"


@pytest.mark.parametrize("group", ["g", "", "größe-日本", "a\nb"])
@pytest.mark.parametrize("metadata", ["", "words", "é" * 100])
def test_what_is_written_is_read(group: str, metadata: str) -> None:
    checkpoint = Checkpoint(
        group=group,
        target=TopicPartition("sf.orders", 2**31 - 1),
        source_next=SourceOffset(2**63 - 1),
        target_next=TargetOffset(0),
        metadata=metadata,
    )
    assert decode_checkpoint(*encode_checkpoint(checkpoint)) == checkpoint
    assert decode_offset_sync(*encode_offset_sync(SYNC)) == SYNC


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", None),
        (b"", b""),
        (bytes.fromhex("000267310003412e7400000003"), bytes.fromhex("0001" + "00" * 18)),
        (bytes.fromhex("000267310003412e7400000003"), bytes.fromhex("0000" + "00" * 19)),
        (bytes.fromhex("0002673100ff412e7400000003"), bytes(20)),
        (bytes.fromhex("ffff"), bytes(20)),
        (bytes.fromhex("0002fffe0003412e7400000003"), bytes(20)),
    ],
)
def test_other_records_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(Unreadable):
        decode_checkpoint(key, value)
    with pytest.raises(Unreadable):
        decode_offset_sync(key, value)


def test_no_negative_offset_gets_out() -> None:
    """`RemoteClusterUtils` would lose its whole answer to one."""
    wrong = Checkpoint(
        group="g", target=TopicPartition("t", 0), source_next=SourceOffset(5), target_next=TargetOffset(-1)
    )
    with pytest.raises(ValueError, match="negative"):
        encode_checkpoint(wrong)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="don't fit"):
        encode_checkpoint(
            Checkpoint(
                group="g" * 40_000,
                target=TopicPartition("t", 0),
                source_next=SourceOffset(1),
                target_next=TargetOffset(1),
            )
        )


def test_metadata_that_does_not_fit_is_left_out() -> None:
    """A broker may allow more of it than a checkpoint can hold; one group must not end the run for all."""
    fits, too_long = replace(CHECKPOINT, metadata="é" * 16_383), replace(CHECKPOINT, metadata="é" * 16_384)
    assert decode_checkpoint(*encode_checkpoint(fits)) == fits
    assert decode_checkpoint(*encode_checkpoint(too_long)) == CHECKPOINT


def test_topics_have_mirror_makers_names() -> None:
    assert checkpoints_topic("sf") == "sf.checkpoints.internal"
    assert offset_syncs_topic("sf") == "mm2-offset-syncs.sf.internal"
    assert checkpoints_topic("sf", "_") == "sf_checkpoints_internal"
