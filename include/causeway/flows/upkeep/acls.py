"""ACLs of mirrors: what differs from the source's, and the changes of a sync.

The ledger (`core/acl_ledger.py`) comes first for what is created and last for what is removed, so that a
death in between leaves no rule that Causeway made and doesn't know; nor does another sync beside this one.
It grows by nothing that is refused for want of the right, however often that is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from causeway.brokers.acls import AclChanges, right_to_change_acls, topic_acls
from causeway.core.acl_ledger import Ledger
from causeway.core.acls import Acl, AclPlan, plan_acls
from causeway.core.errors import BadInput, CausewayError, NotAuthorized
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, acl_gone_record, acl_record
from causeway.core.naming import FLOWS_TOPIC
from causeway.flows.clusters import Clusters, state_on
from causeway.flows.ownership import refuse_fenced
from causeway.flows.upkeep.mirrors import Mirrors

SWITCHED_OFF = "sync.topic.acls.enabled is false"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclView:
    plan: AclPlan | None
    """None: ACLs aren't looked at."""
    note: str = ""
    """Why they aren't."""
    error: CausewayError | None = None
    """This user may not look."""

    @property
    def would_change(self) -> bool:
        return self.plan is not None and bool(self.plan.to_create or self.plan.to_remove)


def look_at_acls(flow: Flow, mirrors: Mirrors, clusters: Clusters) -> AclView:
    if not flow.upkeep.sync_acls:
        return AclView(plan=None, note=SWITCHED_OFF)
    source, target = clusters.source.wire, clusters.target.wire
    try:
        here = clusters.network.run(lambda: topic_acls(source))
        there = clusters.network.run(lambda: topic_acls(target))
        came_back = clusters.network.run(lambda: _made_by_the_other_way(flow, clusters))
    except NotAuthorized as error:
        return AclView(plan=None, error=error)
    if here is None or there is None:
        without = flow.source if here is None else flow.target
        return AclView(plan=None, note=f"{without} has no authorizer: ACLs are skipped")
    plan = plan_acls(
        flow,
        mirrors.begun,
        here - came_back,
        there,
        mirrors.state.acls.keys(),
        mirrored_by=target.endpoint.principal,
        read_by=source.endpoint.principal,
        held_back=mirrors.held_back,
    )
    return AclView(plan=plan)


async def _made_by_the_other_way(flow: Flow, clusters: Clusters) -> Set[Acl]:
    """On the source, by the flow in the other direction: from rules of the target, whose copies they are.
    Led back they would outlive what they were copied from."""
    if not flow.opposite:
        return frozenset()
    return (await state_on(clusters.at_source, flow.opposite)).acls.keys()


def apply_acls(flow: Flow, clusters: Clusters, plan: AclPlan, ledger: Ledger) -> dict[Acl, CausewayError]:
    """The rules that the target refused to add or to remove. `ledger`: as the plan was made with it.

    :raises FlowFenced: while this was on its way; nothing was added or removed.
    """
    changes = (*plan.to_create, *plan.to_remove)
    if not (changes or plan.to_forget):
        return {}
    lacking = clusters.network.run(lambda: right_to_change_acls(clusters.target.wire))
    if lacking is not None:
        return dict.fromkeys(changes, lacking)
    target, book = AclChanges(clusters.target.wire.endpoint), _Book(flow, clusters)
    entries = book.enter(plan.to_create)
    book.refuse_fenced(entries)
    not_made = target.create(plan.to_create)
    never_came = {acl: entries[acl] for acl, error in not_made.items() if _is_final(error)}
    standing = book.ledger()
    book.enter(acl for acl in plan.to_create if acl not in never_came and acl not in standing)
    not_removed = target.remove((*plan.to_remove, *plan.to_forget))
    gone = [acl for acl in (*plan.to_remove, *plan.to_forget) if acl not in not_removed]
    book.take_out({acl: ledger[acl] for acl in gone} | never_came)
    return not_made | not_removed


def _is_final(error: CausewayError) -> bool:
    """Whether it says that the rule wasn't made; of another error it may have been."""
    return isinstance(error, BadInput | NotAuthorized)


class _Book:
    """The ledger as it is written, beside whoever else writes it."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._target, self._run = flow, clusters.target, clusters.network.run

    def ledger(self) -> Ledger:
        return self._state().acls

    def refuse_fenced(self, entries: Mapping[Acl, int]) -> None:
        """Behind what was just entered: a fence in front of it is seen, whichever node answers."""
        state = self._state()
        if state.fence is not None:
            self.take_out(entries)
        refuse_fenced(self._flow.name, state)

    def enter(self, acls: Iterable[Acl]) -> dict[Acl, int]:
        """Also what is there already: whoever takes that entry out doesn't know of this creation."""
        new = list(acls)
        return dict(zip(new, self._append([acl_record(self._flow.name, acl) for acl in new]), strict=True))

    def take_out(self, entries: Mapping[Acl, int]) -> None:
        self._append([acl_gone_record(self._flow.name, acl, entry=at) for acl, at in entries.items()])

    def _state(self) -> FlowState:
        return self._run(lambda: self._target.flow_state(self._flow.name))

    def _append(self, records: list[tuple[bytes, bytes]]) -> list[int]:
        return self._run(lambda: self._target.append_each(FLOWS_TOPIC, records)) if records else []
