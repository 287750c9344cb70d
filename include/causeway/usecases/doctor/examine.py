"""Examine a flow: look at both clusters, judge what was seen, rehearse on the target.

Invariants
    A. Nothing is written but the scratch things, and those only on a cluster that is known not to be the
       flow's source. Read-only writes nothing at all.
    B. A cluster that can't be used is a finding; what is known of the other one is still reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from causeway.brokers.admin.probe import probe
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.describe import describe_cluster, group_operations
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.doctor.brokers import judge_brokers, judge_source_factors
from causeway.core.doctor.clusters import CHECK_IDENTITY, judge_both_clocks, judge_clock, judge_identity
from causeway.core.doctor.excess_rights import (
    MEANT_FOR_OWN,
    Held,
    held_on_source,
    judge_excess,
    judge_writers,
    meant_for_mirrors,
    meant_for_target_cluster,
)
from causeway.core.doctor.failover import judge_failover, judge_journal
from causeway.core.doctor.finding import Diagnosis, Finding, Result, failed_by
from causeway.core.doctor.groups import judge_groups
from causeway.core.doctor.internal_topics import CHECK_OWN_RECORDS, judge_log, judge_lost_journal
from causeway.core.doctor.names import judge_clashes, judge_leftovers, judge_names
from causeway.core.doctor.parked import judge_parked, parked_not_looked_at
from causeway.core.doctor.permissions import judge_missing, settings_rights
from causeway.core.doctor.rehearsal import not_rehearsed
from causeway.core.doctor.takeover import judge_takeover
from causeway.core.doctor.topics import (
    AFTER,
    judge_creation,
    judge_own_topics,
    judge_topics,
    unseen_settings,
)
from causeway.core.doctor.versions import CHECK_VERSIONS, judge_transactions, judge_versions
from causeway.core.kernel.acl_vocabulary import Operation, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.permissions.flow import inherited_right, needed_rights, takeover_rights, upkeep_rights
from causeway.core.state.flow_state import FlowState
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces
from causeway.usecases.doctor.groups import read_group_facts
from causeway.usecases.doctor.map_records import judge_map_of
from causeway.usecases.doctor.permissions import journal_of, lacking_for_failover
from causeway.usecases.doctor.read_topics import (
    SettingsSeen,
    TopicsSeen,
    carried_settings,
    creation_trouble,
    granted,
    read_rights,
    read_settings,
    see_topics,
    state_of,
)
from causeway.usecases.doctor.scratch import rehearse
from causeway.usecases.inspect.flow_status import inspect
from causeway.usecases.journal.store import seen_journal
from causeway.usecases.run_lock.missing_rights import lacking_rights
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.flows_topic_health import read_log_health
from causeway.usecases.session.source_may_be_gone import FlowSession

Say = Callable[[str], None]
_NO_REHEARSAL_AFTER = {"connection", CHECK_IDENTITY, CHECK_VERSIONS}


def examine(
    flow: Flow,
    others: Iterable[Flow],
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    *,
    read_only: bool,
    say: Say,
    groups: FlowGroups | None = None,
    taken_over_from: MirrorMakerPlaces | None = None,
) -> Diagnosis:
    """What is wrong with a cluster is never raised: that is what the findings are for."""
    network = Network()
    examination = _Examination(flow, tuple(others), network, say, groups, taken_over_from)
    try:
        network.run(lambda: examination.run(source, target, read_only=read_only))
    finally:
        examination.close()
        network.close()
    return Diagnosis(flow=flow.name, findings=tuple(examination.found))


class _Examination:
    def __init__(
        self,
        flow: Flow,
        others: tuple[Flow, ...],
        network: Network,
        say: Say,
        groups: FlowGroups | None,
        mirror_maker: MirrorMakerPlaces | None,
    ) -> None:
        self._groups, self._mirror_maker = groups, mirror_maker
        self._flow, self._others, self._network, self._say = flow, others, network, say
        self._wires: dict[Side, Wire] = {}
        self._views: dict[Side, ClusterView] = {}
        self.found: list[Finding] = []

    async def run(self, source: ClusterEndpoint, target: ClusterEndpoint, *, read_only: bool) -> None:
        await self._look_at("source", source)
        await self._look_at("target", target)
        await self._judge_all(read_only=read_only)

    async def _look_at(self, side: Side, endpoint: ClusterEndpoint) -> None:
        self._say(f"doctor: looking at {endpoint.alias}")
        wire = Wire(endpoint, self._network)
        self._wires[side] = wire
        with self._judging("connection", endpoint.alias):
            nodes = [broker.node_id for broker in (await blocking(lambda: probe(endpoint))).brokers]
            await wire.connect()
            self._views[side] = await describe_cluster(wire, nodes)

    def close(self) -> None:
        for wire in self._wires.values():
            wire.disconnect()

    async def _judge_all(self, *, read_only: bool) -> None:
        for side, view in self._views.items():
            self.found.append(judge_versions(view, is_target=side == "target"))
        if "target" in self._views:
            self.found.append(judge_transactions(self._views["target"]))
        if len(self._views) == len(self._wires):
            with self._judging("look", self._flow.name):
                await self._judge_both()
        if "target" in self._views:
            self.found += await self._rehearsal(read_only=read_only)
        self._judge_clocks()

    @contextmanager
    def _judging(self, check: str, where: str) -> Iterator[None]:
        """Trouble ends this part only, as a finding of its own."""
        try:
            yield
        except CausewayError as error:
            self.found.append(failed_by(check, where, error))
        except (Unreachable, OutcomeUnknown, LaneFenced) as trouble:
            said = ClusterUnreachable(where, rule=str(trouble), remedy="look at the brokers, and try again")
            self.found.append(failed_by(check, where, said))

    async def _judge_both(self) -> None:
        flow = self._flow
        clusters = Clusters(
            self._network, WireLogReader(self._wires["source"]), WireTarget(self._wires["target"])
        )
        state = await state_of(flow, clusters)
        source_id, target_id = (self._views[side].cluster_id for side in ("source", "target"))
        self.found.append(judge_identity(flow, source_id, target_id, state))
        seen = await see_topics(flow, clusters, state or FlowState())
        self.found += judge_names(flow, seen.plan)
        self.found += judge_clashes(flow, self._others, list(seen.mirrors.values()))
        left = judge_leftovers(flow.target, seen.existing)
        self.found += [left] if left else []
        await self._judge_rights(clusters, seen)
        await self._judge_settings(clusters, seen)
        await self._judge_groups(clusters)
        await self._judge_failover(clusters, seen)
        await self._judge_takeover(clusters, state or FlowState())
        await self._judge_own_records(clusters, state)
        await self._judge_parked(clusters)

    async def _judge_own_records(self, clusters: Clusters, state: FlowState | None) -> None:
        """Where they may not be read, a check above says so."""
        if state is None:
            return
        flow, target = self._flow, clusters.target
        with self._judging(CHECK_OWN_RECORDS, flow.target):
            health = await read_log_health(flow, target, state)
            self.found += judge_log(flow, health.troubles, target.foreign_records)
            self.found += await judge_map_of(flow, target)
            journal = await seen_journal(FlowSession(self._network, target, None), flow.name)
            self.found += judge_lost_journal(flow, state, journal)

    async def _judge_parked(self, clusters: Clusters) -> None:
        """With the same eyes as `status`. Where these can't see, a check above says why, or this one does."""
        has_failed = any(each.result is Result.FAILED for each in self.found)
        try:
            view = await inspect(self._flow, clusters)
        except (CausewayError, Unreachable, OutcomeUnknown, LaneFenced) as trouble:
            self.found += [] if has_failed else [parked_not_looked_at(self._flow, str(trouble))]
            return
        self.found += judge_parked(self._flow, view.parked)

    async def _judge_groups(self, clusters: Clusters) -> None:
        groups = self._groups
        if groups is None or groups.is_off:
            return
        admin = ClusterAdmin(self._wires["target"].endpoint)
        facts = await read_group_facts(self._flow, groups, clusters, admin)
        self.found += judge_groups(self._flow, groups, facts, self._views)

    async def _judge_failover(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, groups = self._flow, self._groups
        if groups is not None:
            lacking = await lacking_for_failover(flow, groups, clusters, seen.mirrors)
            self.found += judge_failover(lacking, self._views)
            with self._judging(CHECK_OWN_RECORDS, flow.target):
                odd = await journal_of(flow, clusters)
                self.found += judge_journal(odd, self._views["target"].alias)

    async def _judge_takeover(self, clusters: Clusters, state: FlowState) -> None:
        """Where one is to come, or has been."""
        flow, places = self._flow, self._mirror_maker
        is_done = places is None
        if is_done and not any(each.how == "import-mm2" for each in state.set_by_hand.values()):
            return
        needed = [inherited_right(flow)] if places is None else takeover_rights(flow, places)
        lacking = await lacking_rights(needed, clusters.wires)
        self.found += judge_takeover(lacking, self._views, is_done=is_done)

    async def _judge_rights(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, views = self._flow, self._views
        admin = ClusterAdmin(self._wires["target"].endpoint)
        creation = await blocking(lambda: creation_trouble(flow, seen, admin))
        facts = await read_rights(flow, clusters, seen, creation)
        self.found += judge_missing(
            needed_rights(flow, seen.mirrors), facts, views, seen.mirrors, upkeep_rights(flow, seen.mirrors)
        )
        group = await group_operations(self._wires["target"], flow.group)
        mirrors = set(seen.mirrors.values())
        own = {FLOWS_TOPIC, flow.map_topic}
        on_target = granted(seen.target)
        other_way = next((other for other in self._others if other.name == flow.opposite), None)
        on_source = held_on_source(flow, facts.source, views["source"].operations, other_way)
        self.found += judge_excess(views["source"], on_source)
        self.found += judge_excess(
            views["target"],
            (
                Held(
                    resource="topic",
                    granted={name: on_target[name] for name in on_target if name in mirrors},
                    meant=meant_for_mirrors(flow),
                ),
                Held(
                    resource="topic",
                    granted={name: on_target[name] for name in on_target if name in own},
                    meant=MEANT_FOR_OWN,
                ),
                Held(resource="group", granted={flow.group: group}, meant=frozenset({Operation.READ})),
                Held(
                    resource="cluster",
                    granted={"": views["target"].operations},
                    meant=meant_for_target_cluster(flow),
                ),
            ),
        )
        writers = judge_writers(views["target"], mirrors)
        self.found += [writers] if writers else []
        self.found += judge_creation(flow, creation)

    async def _judge_settings(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, view = self._flow, self._views["target"]
        admin = ClusterAdmin(self._wires["source"].endpoint)
        carried = await blocking(lambda: carried_settings(flow, seen, admin))
        settings = await read_settings(flow, clusters, view, seen, carried)
        self.found += judge_brokers(flow, view, settings.kafkas_own)
        self.found += judge_source_factors(flow, view, settings.to_make)
        self.found += judge_own_topics(flow, view, settings.own)
        self.found += judge_topics(flow, settings.pairs)
        self.found += self._unseen(settings)

    def _unseen(self, settings: SettingsSeen) -> list[Finding]:
        flow, views = self._flow, self._views
        found: list[Finding] = []
        if settings.unseen_sources:
            rights = [
                right
                for right in needed_rights(flow, settings.unseen_sources)
                if right.side == "source" and right.operation is Operation.DESCRIBE_CONFIGS
            ]
            found.append(unseen_settings(flow, rights, views["source"].principal, settings.unseen_sources))
        if settings.unseen_mirrors:
            rights = settings_rights(flow, settings.unseen_mirrors)
            names = [flow.naming.target_topic(name) for name in settings.unseen_mirrors]
            found.append(unseen_settings(flow, rights, views["target"].principal, names))
        return found

    async def _rehearsal(self, *, read_only: bool) -> list[Finding]:
        alias = self._flow.target
        if read_only:
            return [
                not_rehearsed(alias, "read-only", f"causeway doctor {self._flow.name}, without --read-only")
            ]
        is_judged = any(each.check == CHECK_IDENTITY for each in self.found)
        failed = {each.check for each in self.found if each.result is Result.FAILED}
        if not is_judged or failed & _NO_REHEARSAL_AFTER:
            return [
                not_rehearsed(alias, "it isn't sure that this is the target", "cure what FAILED above first")
            ]
        self._say(f"doctor: rehearsing on a scratch topic of {alias}")
        found: list[Finding] = []
        with self._judging("rehearsal", alias):
            target = WireTarget(self._wires["target"])
            found, reading = await rehearse(self._flow, target, self._views["target"])
            if self._views["target"].clock is None:
                self._views["target"] = replace(self._views["target"], clock=reading)
        return found

    def _judge_clocks(self) -> None:
        self.found += [judge_clock(view) for view in self._views.values()]
        if len(self._views) == len(self._wires):
            source, target = self._views["source"], self._views["target"]
            most_ahead_ms = target.least(f"log.{AFTER}")
            both = judge_both_clocks(self._flow, source.clock, target.clock, most_ahead_ms)
            self.found += [both] if both else []
