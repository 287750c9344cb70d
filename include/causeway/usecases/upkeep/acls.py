"""ACLs of mirrors: what differs from the source's, and the changes of a sync.

The ledger (`core/state/acl_ledger.py`) comes first for what is created and last for what is removed, so that
a death in between leaves no rule that Causeway made and doesn't know; nor does another sync beside this one.
It grows by nothing that is refused for want of the right, however often that is tried. Each request goes
out on a proof that the flow is open (`still_open.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from causeway.brokers.admin.acls import AclChanges, Ask, right_to_change_acls, topic_acls
from causeway.brokers.transport.connection import Wire
from causeway.core.kernel.errors import BadInput, CausewayError, ClusterTrouble, FlowFenced, NotAuthorized
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.acl import Acl
from causeway.core.state.acl_ledger import Ledger, acl_gone_record, acl_record
from causeway.core.topics.acls import AclPlan, AclsFound, plan_acls
from causeway.usecases.session.both_clusters import Clusters, state_on
from causeway.usecases.upkeep.mirrors import Mirrors, see_mirrors
from causeway.usecases.upkeep.still_open import StillOpen

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


async def read_acl_view(flow: Flow, mirrors: Mirrors, clusters: Clusters) -> AclView:
    if not flow.upkeep.sync_acls:
        return AclView(plan=None, note=SWITCHED_OFF)
    source, target = clusters.source.wire, clusters.target.wire
    try:
        came_back = await _made_by_the_other_way(flow, clusters)
        here = await topic_acls(source)
        there = await topic_acls(target)
        came_back |= await _made_by_the_other_way(flow, clusters)
    except NotAuthorized as error:
        return AclView(plan=None, error=error)
    if here is None or there is None:
        without = flow.source if here is None else flow.target
        return AclView(plan=None, note=f"{without} has no authorizer: ACLs are skipped")
    plan = plan_acls(
        flow,
        mirrors.begun,
        AclsFound(here - came_back, there, mirrors.state.acls.keys()),
        mirrored_by=target.endpoint.principal,
        read_by=source.endpoint.principal,
        held_back=mirrors.held_back,
    )
    if here or not (plan.to_remove or plan.to_forget):
        return AclView(plan=plan)
    stays = (*plan.to_remove, *plan.to_forget)
    return AclView(
        plan=replace(plan, to_remove=(), to_forget=()), error=_shows_nothing(flow, source, len(stays))
    )


def _shows_nothing(flow: Flow, source: Wire, stay: int) -> CausewayError:
    """An authorizer that lost its rules, or shows them to nobody, answers as one that has none."""
    return ClusterTrouble(
        f"ACLs of {source.endpoint}",
        rule="it shows no rule about any topic, and that is no reason to take away "
        f"{counted(stay, 'rule')} that {flow.name} has added on {flow.target}",
        remedy="look at its authorizer; if it has none left, remove them from the target by kafka-acls.sh",
    )


async def _made_by_the_other_way(flow: Flow, clusters: Clusters) -> Set[Acl]:
    """On the source, by the flow in the other direction: from rules of the target, whose copies they are.
    Mirrored back they would outlive what they were copied from.

    Asked before and after the source's rules: a rule is there for as long as its entry, and no longer."""
    if not flow.opposite:
        return frozenset()
    return (await state_on(clusters.at_source, flow.opposite)).acls.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class AclsDone:
    created: tuple[Acl, ...] = ()
    removed: tuple[Acl, ...] = ()
    refused: tuple[CausewayError, ...] = ()
    """Why the target didn't add or remove the others."""
    unseen: CausewayError | None = None


async def sync_acls(flow: Flow, clusters: Clusters, still_open: StillOpen) -> AclsDone:
    """By what is seen now: the source may have changed its mind since anybody looked.

    :raises FlowFenced: nothing more is added or removed, and what may have slipped through is named.
    """
    looked_at = still_open.now()
    mirrors = await see_mirrors(flow, clusters)
    view = await read_acl_view(flow, mirrors, clusters)
    if view.plan is None:
        return AclsDone(unseen=view.error)
    work = _Work(flow, clusters, view.plan, mirrors.state.acls, still_open, looked_at)
    refused = await work.apply()
    return AclsDone(
        created=tuple(acl for acl in view.plan.to_create if acl not in refused),
        removed=tuple(acl for acl in view.plan.to_remove if acl not in refused),
        refused=tuple(refused.values()),
        unseen=view.error,
    )


class _Work:
    def __init__(
        self,
        flow: Flow,
        clusters: Clusters,
        plan: AclPlan,
        ledger: Ledger,
        still_open: StillOpen,
        looked_at: float,
    ) -> None:
        self._clusters, self._plan, self._ledger = clusters, plan, ledger
        self._still_open, self._looked_at = still_open, looked_at
        self._book = _Book(flow, clusters)
        self._target = AclChanges(clusters.target.wire.endpoint, self._guarded)
        self._asked = set[Acl]()

    async def apply(self) -> dict[Acl, CausewayError]:
        """The rules that the target refused to add or to remove."""
        plan, book = self._plan, self._book
        changes = (*plan.to_create, *plan.to_remove)
        if not (changes or plan.to_forget):
            return {}
        lacking = await right_to_change_acls(self._clusters.target.wire)
        if lacking is not None:
            return dict.fromkeys(changes, lacking)
        entries = await book.enter(plan.to_create)
        not_made = await self._create(entries)
        never_came = {acl: entries[acl] for acl, error in not_made.items() if _is_final(error)}
        standing = await book.ledger()
        await book.enter(acl for acl in plan.to_create if acl not in never_came and acl not in standing)
        gone, not_removed = await self._remove(not_made)
        await book.take_out({acl: self._ledger[acl] for acl in gone} | never_came)
        return not_made | not_removed

    async def _create(self, entries: Mapping[Acl, int]) -> dict[Acl, CausewayError]:
        try:
            return await self._target.create(self._plan.to_create)
        except FlowFenced:
            await self._book.take_out({acl: at for acl, at in entries.items() if acl not in self._asked})
            raise

    async def _remove(
        self, not_made: Mapping[Acl, CausewayError]
    ) -> tuple[list[Acl], dict[Acl, CausewayError]]:
        """What is gone, and what is not. No denial goes while one that may come in its place is refused."""
        wanted = (*self._plan.to_remove, *self._plan.to_forget)
        refusal = next((error for acl, error in not_made.items() if acl.permission == "Deny"), None)
        stays = {acl: refusal for acl in wanted if refusal is not None and acl.permission == "Deny"}
        not_removed = stays | await self._target.remove(acl for acl in wanted if acl not in stays)
        return [acl for acl in wanted if acl not in not_removed], not_removed

    async def _guarded(self, rules: Sequence[Acl], ask: Ask) -> dict[Acl, CausewayError]:
        def act() -> dict[Acl, CausewayError]:
            self._asked |= set(rules)
            return ask()

        return await self._still_open.change([str(acl) for acl in rules], self._looked_at, act)


def _is_final(error: CausewayError) -> bool:
    """Whether it says that the rule wasn't made; of another error it may have been."""
    return isinstance(error, BadInput | NotAuthorized)


class _Book:
    """The ledger as it is written, beside whoever else writes it."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._target = flow, clusters.target

    async def ledger(self) -> Ledger:
        return (await self._target.flow_state(self._flow.name)).acls

    async def enter(self, acls: Iterable[Acl]) -> dict[Acl, int]:
        """Also what is there already: whoever takes that entry out doesn't know of this creation."""
        new = list(acls)
        entries = await self._append([acl_record(self._flow.name, acl) for acl in new])
        return dict(zip(new, entries, strict=True))

    async def take_out(self, entries: Mapping[Acl, int]) -> None:
        await self._append([acl_gone_record(self._flow.name, acl, entry=at) for acl, at in entries.items()])

    async def _append(self, records: list[tuple[bytes, bytes]]) -> list[int]:
        return await self._target.append_each(FLOWS_TOPIC, records) if records else []
