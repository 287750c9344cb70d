"""Many groups asked about many partitions: a broker closes the connection when a request is too large."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.lab.cluster import LabCluster
from causeway.usecases.session.both_clusters import open_target
from tests.integration.groups.stage import commit, make_topic

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
GROUPS, TOPICS = 100, 1_000


def test_they_are_asked_in_as_many_requests_as_it_takes(lab_cluster: LabClusterFactory) -> None:
    """A tenth of what brokers take that nobody has changed, and as much less is asked."""
    cluster = lab_cluster("narrow", broker_settings={"socket.request.max.bytes": "10485760"})
    make_topic(cluster, "t")
    names = [f"g{number}" for number in range(GROUPS)]
    for number, name in enumerate(names[::10]):
        commit(cluster, name, {("t", 0): number})
    wanted = {"t": [0], **{f"{'n' * 200}{number}": [0] for number in range(TOPICS)}}
    with open_target(cluster.endpoint()) as (network, target):
        found = network.run(lambda: ConsumerGroups(target.wire).committed(names, wanted))
    assert set(found) == set(names)
    held = {}
    for name, offsets in found.items():
        assert not isinstance(offsets, Refused)
        if offsets:
            held[name] = {tp: at.offset for tp, at in offsets.items()}
    assert held == {name: {TopicPartition("t", 0): n} for n, name in enumerate(names[::10])}
