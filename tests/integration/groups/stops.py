"""Random stops: how a group is stopped on the source, started on the target, and judged."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.stage import (
    GroupStage,
    Record,
    all_values,
    consume,
    write,
    write_in_transactions,
)


def prepared(scene: GroupStage, kind: str, records: int, dice: random.Random) -> GroupStage:
    """The source's records, mirrored in several runs."""
    shares = sorted({0, records, *(dice.randrange(records) for _ in range(3))})
    for first, end in pairwise(shares):
        if kind == "plain":
            write(scene.source, scene.topic, range(first, end), scene.partitions)
        else:
            write_in_transactions(scene.source, scene.topic, range(first, end), scene.partitions, dice)
        scene.mirror.run()
    return scene


def assert_each_is_read_once(
    scene: GroupStage, name: str, client: str, java: GroupProbe, dice: random.Random
) -> None:
    """A group that is stopped on the source and started on the target misses none and reads none again."""
    group = scene.group(name)
    every = [(p, value) for p, _, value in all_values(scene.target, scene.mirrored)]
    stop = dice.randrange(1, len(every))
    first = _read(scene, group, client, java, stop)
    scene.sync()
    rest = _read(scene, group, client, java, -1)
    seen = Counter((p, value) for p, _, value in [*first, *rest])
    missed = Counter(every) - seen
    again = seen - Counter(every)
    assert (missed, again) == (Counter(), Counter()), f"{group} stopped after {stop} of {len(every)}"
    for partition in range(scene.partitions):
        read = [value for p, _, value in [*first, *rest] if p == partition]
        assert read == [value for p, value in every if p == partition], "in order"


def _read(scene: GroupStage, group: str, client: str, java: GroupProbe, count: int) -> list[Record]:
    """So many from the source, or (-1) all that is left on the target.

    On the target a partition of which the group has read nothing has no offset: from its beginning then.
    """
    cluster, topic = (scene.source, scene.topic) if count >= 0 else (scene.target, scene.mirrored)
    if client == "java":
        return java.consume(cluster, topic, group, count, reset="earliest")
    return consume(cluster, topic, group, count, reset="earliest")
