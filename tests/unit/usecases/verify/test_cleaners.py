"""Each side has a cleaner of its own; one that may not be asked for counts as none, and that is reported."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, NotAuthorized, UnknownName
from causeway.core.kernel.identity import TopicPartition
from causeway.core.topics.carried_settings import SettingSource, TopicSetting
from causeway.usecases.verify import cleaners
from causeway.usecases.verify.cleaners import with_cleaners
from causeway.usecases.verify.partition_pair import PartitionPair

SF, NYC = (ClusterEndpoint(alias, {"bootstrap.servers": "x:1"}) for alias in ("sf", "nyc"))
DENIED = NotAuthorized("topic clicks", rule="may not be described", remedy="kafka-acls.sh --add")
GONE = UnknownName("topic sf.clicks", rule="isn't there")
PAIR = PartitionPair(source=TopicPartition("clicks", 0), target=TopicPartition("sf.clicks", 0))
Answer = str | CausewayError


def seen(source: Answer, target: Answer, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, bool, int]:
    """What is believed of both sides, and how many notes say that it is a guess."""

    class Admin:
        def __init__(self, endpoint: ClusterEndpoint) -> None:
            self.answer = source if endpoint is SF else target

        def topic_settings(self, topics: Collection[str]) -> dict[str, object]:
            return dict.fromkeys(topics, self._settings())

        def _settings(self) -> object:
            if isinstance(self.answer, CausewayError):
                return self.answer
            return (TopicSetting(name="cleanup.policy", value=self.answer, source=SettingSource.TOPIC),)

    monkeypatch.setattr(cleaners, "ClusterAdmin", Admin)
    found = with_cleaners(SF, NYC, [PAIR])
    (pair,) = found.pairs
    assert all("kafka-acls.sh" in note for note in found.notes)
    return pair.source_is_compacted, pair.target_is_compacted, len(found.notes)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("compact", "compact,delete", (True, True, 0)),
        ("compact", "delete", (True, False, 0)),
        ("delete", "compact", (False, True, 0)),
        ("compact", DENIED, (True, False, 1)),
        (DENIED, "compact", (False, True, 1)),
        (DENIED, "delete", (False, False, 0)),
        ("compact", GONE, (True, False, 0)),
    ],
)
def test_each_side_is_asked_for_itself(
    source: Answer, target: Answer, expected: tuple[bool, bool, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen(source, target, monkeypatch) == expected
