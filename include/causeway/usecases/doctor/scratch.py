"""Around the rehearsal: whether its rights are there, the scratch topic made, and deleted whatever happens.

A right that is missing for the scratch things isn't a fault of the flow's: nothing is written then, and the
finding says which grants it takes.
"""

from __future__ import annotations

import uuid

from causeway import interruption
from causeway.brokers.admin.scratch import Scratch, delete_scratch
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.describe import group_operations, wait_until_known
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.doctor.finding import Finding, failed_by
from causeway.core.doctor.permissions import doctor_rights
from causeway.core.doctor.rehearsal import (
    CHECK_REHEARSAL,
    left_behind,
    rights_missing,
    said_of_left_behind,
    trouble_with,
)
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.cluster_facts import ClockReading, ClusterView
from causeway.core.kernel.errors import CausewayError, NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.model.naming import SCRATCH_PREFIX
from causeway.core.topics.plan import NewTopicPlan
from causeway.usecases.doctor.rehearsal import SCRATCH_PARTITIONS, Rehearsal
from causeway.usecases.session.blocking import blocking


async def rehearse(
    flow: Flow, target: WireTarget, view: ClusterView
) -> tuple[list[Finding], ClockReading | None]:
    """All of it, and what it showed of the target's clock; Ctrl-C deletes the scratch things too."""
    scratch = Scratch(uuid.uuid4().hex[:12])
    plan = NewTopicPlan(scratch.topic, SCRATCH_PARTITIONS, (), flow.own_replication_factor)
    admin = ClusterAdmin(target.wire.endpoint)
    try:
        refusals = await blocking(lambda: admin.create_topics([plan], validate_only=True))
        refusal = refusals.get(scratch.topic)
        if refusal is not None and not isinstance(refusal, NotAuthorized):
            return [failed_by(CHECK_REHEARSAL, view.alias, refusal)], None
        may_create = refusal is None
        missing = await _missing_rights(flow, target, scratch, may_create=may_create)
    except (Unreachable, OutcomeUnknown) as trouble:
        return [trouble_with(view.alias, "rights", str(trouble))], None
    if missing:
        return [rights_missing(view, missing)], None
    left: list[CausewayError] = []
    try:
        try:
            found, reading = await _on_scratch_topic(flow, target, view, plan, scratch)
        finally:
            with interruption.whole():
                left = delete_scratch(target.wire.endpoint, scratch)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(said_of_left_behind(scratch.topic, left)) from None
    return [*found, *left_behind(view.alias, scratch.topic, left)], reading


async def _on_scratch_topic(
    flow: Flow, target: WireTarget, view: ClusterView, plan: NewTopicPlan, scratch: Scratch
) -> tuple[list[Finding], ClockReading | None]:
    alias, admin = view.alias, ClusterAdmin(target.wire.endpoint)
    second = WireTarget(Wire(target.wire.endpoint, target.wire.network))
    try:
        for refusal in (await blocking(lambda: admin.create_topics([plan]))).values():
            return [failed_by(CHECK_REHEARSAL, alias, refusal)], None
        await blocking(lambda: admin.wait_for_leaders({plan.name: plan.partitions}))
        nodes = [broker.node_id for broker in view.brokers]
        await wait_until_known(target.wire, nodes, plan.name, plan.partitions)
        await second.wire.connect()
        rehearsal = Rehearsal(flow, target, second, scratch)
        return await rehearsal.run(), rehearsal.reading
    except CausewayError as error:
        return [failed_by(CHECK_REHEARSAL, alias, error)], None
    except Unreachable as trouble:
        return [trouble_with(alias, "scratch topic", str(trouble))], None
    finally:
        second.wire.disconnect()


async def _missing_rights(
    flow: Flow, target: WireTarget, scratch: Scratch, *, may_create: bool
) -> list[NeededRight]:
    """Those of the scratch things that this user lacks; all are asked without writing anything."""
    topic = (await target.wire.topics([scratch.topic]))[scratch.topic]
    group = await group_operations(target.wire, scratch.group)
    may_claim = await _may_claim(target, scratch)

    def lacks(right: NeededRight) -> bool:
        match right.resource:
            case "topic" if right.operation is Operation.CREATE:
                return not may_create
            case "topic":
                return topic.lacks(right.operation) is not None
            case "group":
                return group is not None and right.operation not in group
            case "transactional-id":
                return not may_claim
        return False

    return [right for right in doctor_rights(flow) if right.name == SCRATCH_PREFIX and lacks(right)]


async def _may_claim(target: WireTarget, scratch: Scratch) -> bool:
    try:
        await target.check_claim_right(scratch.transactional_id)
    except NotAuthorized:
        return False
    return True
