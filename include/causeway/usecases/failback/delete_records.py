"""Empty the old primary's topics: what was compared, and never a record more.

By DeleteRecords, not by deleting topics: a record that comes late stays and is seen, no offset ever means
another record, and ids, settings and ACLs stay. A compacted topic refuses it, so for that moment its policy
is widened; what it was before is written down first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from causeway import interruption
from causeway.brokers.admin.delete_records import delete_before
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.log_reader import READ_UNCOMMITTED
from causeway.core.failback.divergence import FailbackPlan
from causeway.core.failback.rebuild_impact import still_written_to
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.topics.carried_settings import SettingSource
from causeway.usecases.failback.divergence import FailbackSession, bounds

_POLICY, _WIDENED = "cleanup.policy", "compact,delete"
Policies = Mapping[str, str | None]
"""By topic what was set on the topic itself; None: nothing, the broker's own policy holds."""
Ends = Mapping[TopicPartition, int]


def policies_in_the_way(endpoint: ClusterEndpoint, topics: Collection[str]) -> dict[str, str | None]:
    """Of topics that are compacted and never deleted from.

    :raises CausewayError: their settings may not be seen.
    """
    found: dict[str, str | None] = {}
    for topic, settings in ClusterAdmin(endpoint).topic_settings(sorted(topics), with_defaults=True).items():
        if isinstance(settings, CausewayError):
            raise settings
        for setting in settings:
            if setting.name == _POLICY and setting.value == "compact":
                found[topic] = setting.value if setting.source is SettingSource.TOPIC else None
    return found


async def empty(
    endpoint: ClusterEndpoint, ends: Ends, policies: Policies, prove: Callable[[], Awaitable[None]]
) -> None:
    """Doing it again does no harm; the policies are restored whatever happens in between.

    `prove`, before each portion: the fences under which this is done still stand.

    :raises CausewayError: a refusal; other partitions may be empty by then.
    :raises FlowHeld: a fence was lifted; what isn't empty by then stays.
    """
    admin = ClusterAdmin(endpoint)
    await prove()
    _set_policies(admin, dict.fromkeys(policies, _WIDENED))  # Ctrl-C meanwhile is heard after it, in the try
    try:
        await delete_before(endpoint, ends, prove)
    finally:
        with interruption.whole():
            _set_policies(admin, policies)


def _set_policies(admin: ClusterAdmin, policies: Policies) -> None:
    changes = {topic: {_POLICY: policy} for topic, policy in policies.items()}
    for refused in admin.alter_settings(changes).values():
        raise refused


async def refuse_moved(pairing: FailbackSession, plan: FailbackPlan) -> None:
    """The last look before anything is dropped.

    :raises BadInput: somebody has written to the old primary since the export was compared.
    """
    partitions = [cut.old for cut in plan.cuts]
    _, ends = await bounds(pairing.old, partitions, READ_UNCOMMITTED)
    moved = {cut.old.topic for cut in plan.cuts if ends[cut.old] != cut.old_end}
    if moved:
        raise still_written_to(pairing.forward.source, moved)


async def prove_empty(pairing: FailbackSession, emptied: Ends) -> None:
    """:raises BadInput: somebody has written meanwhile. | :raises ProtocolFault: something is left."""
    starts, ends = await bounds(pairing.old, list(emptied), READ_UNCOMMITTED)
    late = {tp.topic for tp, end in emptied.items() if ends[tp] != end}
    if late:
        raise still_written_to(pairing.forward.source, late)
    for tp, end in emptied.items():
        if starts[tp] != end:
            raise ProtocolFault(
                f"{tp} of {pairing.forward.source}",
                value=f"begins at {starts[tp]}",
                rule=f"must begin at {end} once it is emptied",
                remedy="run the same command again",
            )
