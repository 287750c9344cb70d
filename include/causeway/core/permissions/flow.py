"""The rights that a flow needs on its two clusters, and the command that grants each: the one list of them.
`core/permissions/failover.py` has those of failover, drill and failback.

Kafka's own words (`kafka-acls.sh`): an operation on a resource whose name is literal or a prefix. Read and
Write imply Describe; that is why Describe isn't in the list. docs/rights.md shows it for people.
"""

from __future__ import annotations

from collections.abc import Iterable

from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, Resource, Side
from causeway.core.model.flow import Flow, RefusedPolicy, group_of, map_topic_of
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC, PrefixNaming
from causeway.core.offsets.mm2_offset_syncs import inherited_topic_of
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces


def needed_rights(flow: Flow, source_topics: Iterable[str]) -> tuple[NeededRight, ...]:
    """The least that lets `flow` mirror these topics of its source; nothing in it can be left out.

    What it keeps up besides needs more: see `upkeep_rights`.
    """
    topics = sorted(source_topics)
    return (
        *_on_source(topics),
        *(_on_other_way(flow) if flow.opposite else ()),
        *_on_mirrors(flow, topics),
        *_on_own_things(flow),
    )


def group_rights(flow: Flow, groups: FlowGroups, names: Iterable[str]) -> tuple[NeededRight, ...]:
    """The least that lets `flow` see to these consumer groups of its source, besides its own rights."""
    uses = (
        (groups.emit_checkpoints, flow.checkpoints_topic, "checkpoints"),
        (groups.emit_offset_syncs, flow.syncs_topic, "offset syncs"),
    )
    topics = [
        _on_target("topic", topic, operation, why)
        for is_on, topic, what in uses
        if is_on and not is_covered(flow, topic)
        for operation, why in (
            (Operation.CREATE, f"make the topic of {what}"),
            (Operation.WRITE, f"write {what}"),
            (Operation.READ, f"write only {what} that have changed"),
        )
    ]
    wanted = sorted(names)
    on_source = [
        NeededRight(
            side="source",
            resource="group",
            name=name,
            operation=Operation.DESCRIBE,
            why="see the group and what it has committed",
        )
        for name in wanted
    ]
    why = "commit translated offsets for it while it is idle there"
    on_target = [_on_target("group", name, Operation.READ, why) for name in wanted if groups.sync_offsets]
    return (*on_source, *topics, *on_target)


def is_covered(flow: Flow, topic: str) -> bool:
    """By the rights on the mirrors' common prefix."""
    return isinstance(flow.naming, PrefixNaming) and topic.startswith(flow.naming.target_topic(""))


def _on_target(resource: Resource, name: str, operation: Operation, why: str) -> NeededRight:
    return NeededRight(side="target", resource=resource, name=name, operation=operation, why=why)


def _on_source(topics: list[str]) -> list[NeededRight]:
    uses = (
        (Operation.READ, "see and fetch its records"),
        (Operation.DESCRIBE_CONFIGS, "give the new mirror the settings of its source"),
    )
    return [
        NeededRight(side="source", resource="topic", name=topic, operation=operation, why=why)
        for topic in topics
        for operation, why in uses
    ]


def _on_other_way(flow: Flow) -> list[NeededRight]:
    """What the flow in the other direction keeps there: who may write now, and from where on."""
    uses: tuple[tuple[Resource, str, Operation, str], ...] = (
        ("topic", FLOWS_TOPIC, Operation.READ, "see that the other flow is fenced"),
        ("group", group_of(flow.opposite), Operation.DESCRIBE, "know where its records end"),
        ("topic", map_topic_of(flow.target), Operation.READ, "the same where its positions have expired"),
    )
    return [
        NeededRight(side="source", resource=resource, name=name, operation=operation, why=why)
        for resource, name, operation, why in uses
    ]


def _on_mirrors(flow: Flow, topics: list[str]) -> list[NeededRight]:
    """One prefix covers all mirrors; names that stay as they are have to be named one by one."""
    uses = [
        (Operation.CREATE, "make the mirrors"),
        (Operation.WRITE, "append to them"),
        (Operation.READ, "commit positions in them, and prove that nobody else wrote there"),
        (Operation.ALTER, "give a mirror more partitions when its source got more"),
    ]
    if flow.settle:
        uses.append((Operation.DESCRIBE_CONFIGS, "see that they aren't compacted, and may be settled"))
    if flow.on_refused is RefusedPolicy.RAISE_LIMIT:
        uses.append((Operation.ALTER_CONFIGS, "raise a limit that a record doesn't fit in"))
    return _of_mirrors(flow, topics, uses)


def _of_mirrors(flow: Flow, topics: list[str], uses: Iterable[tuple[Operation, str]]) -> list[NeededRight]:
    is_prefix = isinstance(flow.naming, PrefixNaming)
    names = [flow.naming.target_topic("")] if is_prefix else [flow.naming.target_topic(t) for t in topics]
    uses = list(uses)
    return [
        NeededRight(
            side="target", resource="topic", name=name, operation=operation, why=why, is_prefix=is_prefix
        )
        for name in names
        for operation, why in uses
    ]


def _on_own_things(flow: Flow) -> list[NeededRight]:
    uses = [
        (FLOWS_TOPIC, Operation.CREATE, "make the topic that says whose turn it is"),
        (FLOWS_TOPIC, Operation.WRITE, "take the turn, prove it after each claim, fence"),
        (FLOWS_TOPIC, Operation.READ, "know whose turn it is, and prove that positions are the newest"),
        (flow.map_topic, Operation.CREATE, "make the offset map"),
        (flow.map_topic, Operation.WRITE, "write the offset map with the data"),
        (flow.map_topic, Operation.READ, "find a lost position or a lost tail again"),
    ]
    if flow.quarantines:
        name = flow.quarantine_topic
        uses += [
            (name, Operation.CREATE, "make the topic for records that a mirror doesn't take"),
            (name, Operation.WRITE, "put such records there"),
            (name, Operation.READ, "know, when comparing, which records are there"),
        ]
    topics = [
        NeededRight(side="target", resource="topic", name=name, operation=operation, why=why)
        for name, operation, why in uses
    ]
    return [
        *topics,
        NeededRight(
            side="target",
            resource="group",
            name=flow.group,
            operation=Operation.READ,
            why="read and commit the positions",
        ),
        NeededRight(
            side="target",
            resource="transactional-id",
            name=f"{flow.group}.",
            operation=Operation.WRITE,
            why="claim the lanes, one transactional id each",
            is_prefix=True,
        ),
    ]


def upkeep_rights(flow: Flow, source_topics: Iterable[str]) -> tuple[NeededRight, ...]:
    """What the flow needs besides for what it has to keep equal; the copy needs none of it."""
    topics = sorted(source_topics)
    return (
        *(_for_settings(flow, topics) if flow.upkeep.sync_settings else ()),
        *(_for_acls() if flow.upkeep.sync_acls else ()),
        *(_for_heartbeats() if flow.upkeep.emit_heartbeats else ()),
    )


def _for_settings(flow: Flow, topics: list[str]) -> list[NeededRight]:
    """AlterConfigs brings DescribeConfigs with it; on the source the flow may read settings anyhow."""
    return _of_mirrors(
        flow, topics, [(Operation.ALTER_CONFIGS, "compare their settings, and make them as on the source")]
    )


def _for_acls() -> list[NeededRight]:
    """Alter brings Describe with it."""
    uses: tuple[tuple[Side, Operation, str], ...] = (
        ("source", Operation.DESCRIBE, "read the ACLs of topics"),
        ("target", Operation.ALTER, "add ACLs, and remove those that are gone from the source"),
    )
    return [
        NeededRight(side=side, resource="cluster", name="", operation=operation, why=why)
        for side, operation, why in uses
    ]


def _for_heartbeats() -> list[NeededRight]:
    uses = (
        (Operation.CREATE, "make the topic of heartbeats"),
        (Operation.WRITE, "write heartbeats"),
    )
    return [
        NeededRight(side="source", resource="topic", name=HEARTBEATS_TOPIC, operation=operation, why=why)
        for operation, why in uses
    ]


def takeover_rights(flow: Flow, places: MirrorMakerPlaces) -> tuple[NeededRight, ...]:
    """What `import-mm2 --adopt` needs besides the flow's own rights: to know where MirrorMaker 2 stands, and
    to keep its offset syncs. Afterwards only the last one is of use."""
    kept = inherited_topic_of(flow.name)
    return (
        _on_target("group", places.group, Operation.DESCRIBE, "see whether a worker of MirrorMaker 2 lives"),
        _on_target("topic", places.offsets_topic, Operation.READ, "read MirrorMaker 2's position"),
        NeededRight(
            side="source" if places.syncs_on_source else "target",
            resource="topic",
            name=places.syncs_topic,
            operation=Operation.READ,
            why="read its offset syncs",
        ),
        _on_target("topic", kept, Operation.CREATE, "make the topic that keeps them"),
        _on_target("topic", kept, Operation.WRITE, "keep them"),
        inherited_right(flow),
    )


def inherited_right(flow: Flow) -> NeededRight:
    """Of a flow that has taken over, for as long as offsets from before are asked for."""
    why = "translate offsets from before the takeover"
    return _on_target("topic", inherited_topic_of(flow.name), Operation.READ, why)
