"""Examine a flow: look at both clusters, judge what was seen, rehearse on the target.

Invariants
    A. Nothing is written but the scratch things, and those only on a cluster that is known not to be the
       flow's source. Read-only writes nothing at all.
    B. A cluster that can't be used is a finding; what can be said of the other one is still said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.inspection import group_operations, look_at_cluster
from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.probe import probe
from causeway.brokers.target_log import WireTarget
from causeway.brokers.wire import Network, Wire
from causeway.core.diagnosis.brokers import judge_brokers, judge_source_factors
from causeway.core.diagnosis.clusters import CHECK_IDENTITY, judge_both_clocks, judge_clock, judge_identity
from causeway.core.diagnosis.facts import ClusterView
from causeway.core.diagnosis.failover import judge_failover, judge_journal
from causeway.core.diagnosis.finding import Diagnosis, Finding, Result, failed_by
from causeway.core.diagnosis.groups import judge_groups
from causeway.core.diagnosis.names import judge_clashes, judge_leftovers, judge_names
from causeway.core.diagnosis.own_records import CHECK_OWN_RECORDS, judge_log, judge_lost_journal
from causeway.core.diagnosis.parked import judge_parked, parked_not_looked_at
from causeway.core.diagnosis.rehearsal import not_rehearsed
from causeway.core.diagnosis.rights import (
    MEANT_FOR_OWN,
    Held,
    held_on_source,
    judge_excess,
    judge_missing,
    judge_writers,
    meant_for_mirrors,
    meant_for_target_cluster,
    settings_rights,
)
from causeway.core.diagnosis.takeover import judge_takeover
from causeway.core.diagnosis.topics import (
    AFTER,
    judge_creation,
    judge_own_topics,
    judge_topics,
    unseen_settings,
)
from causeway.core.diagnosis.versions import CHECK_VERSIONS, judge_transactions, judge_versions
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Beaten, Doubt, Unreachable
from causeway.core.rights import (
    Operation,
    Side,
    inherited_right,
    needed_rights,
    takeover_rights,
    upkeep_rights,
)
from causeway.core.takeover import MirrorMakerPlaces
from causeway.flows.clusters import Clusters
from causeway.flows.doctor.failover import journal_of, lacking_for_failover
from causeway.flows.doctor.groups import look_at_groups
from causeway.flows.doctor.look import (
    SettingsSeen,
    TopicsSeen,
    carried_settings,
    creation_trouble,
    granted,
    look_at_rights,
    look_at_settings,
    see_topics,
    state_of,
)
from causeway.flows.doctor.own_records import judge_map_of
from causeway.flows.doctor.scratch import rehearse
from causeway.flows.failover.logbook import seen_journal
from causeway.flows.failover.sides import Sides
from causeway.flows.lacking import lacking_rights
from causeway.flows.log_health import look_at_log
from causeway.flows.look import look

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
        examination.look_at("source", source)
        examination.look_at("target", target)
        examination.judge(read_only=read_only)
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

    def look_at(self, side: Side, endpoint: ClusterEndpoint) -> None:
        self._say(f"doctor: looking at {endpoint.alias}")
        wire = Wire(endpoint, self._network)
        self._wires[side] = wire
        with self._judging("connection", endpoint.alias):
            nodes = [broker.node_id for broker in probe(endpoint).brokers]
            self._network.run(wire.connect)
            self._views[side] = self._network.run(lambda: look_at_cluster(wire, nodes))

    def close(self) -> None:
        for wire in self._wires.values():
            wire.disconnect()

    def judge(self, *, read_only: bool) -> None:
        for side, view in self._views.items():
            self.found.append(judge_versions(view, is_target=side == "target"))
        if "target" in self._views:
            self.found.append(judge_transactions(self._views["target"]))
        if len(self._views) == len(self._wires):
            with self._judging("look", self._flow.name):
                self._judge_both()
        if "target" in self._views:
            self.found += self._rehearsal(read_only=read_only)
        self._judge_clocks()

    @contextmanager
    def _judging(self, check: str, where: str) -> Iterator[None]:
        """Trouble ends this part only, as a finding of its own."""
        try:
            yield
        except CausewayError as error:
            self.found.append(failed_by(check, where, error))
        except (Unreachable, Doubt, Beaten) as trouble:
            said = ClusterUnreachable(where, rule=str(trouble), remedy="look at the brokers, and try again")
            self.found.append(failed_by(check, where, said))

    def _judge_both(self) -> None:
        flow, run = self._flow, self._network.run
        clusters = Clusters(
            self._network, WireLogReader(self._wires["source"]), WireTarget(self._wires["target"])
        )
        state = run(lambda: state_of(flow, clusters))
        source_id, target_id = (self._views[side].cluster_id for side in ("source", "target"))
        self.found.append(judge_identity(flow, source_id, target_id, state))
        seen = run(lambda: see_topics(flow, clusters, state or FlowState()))
        self.found += judge_names(flow, seen.plan)
        self.found += judge_clashes(flow, self._others, list(seen.mirrors.values()))
        left = judge_leftovers(flow.target, seen.existing)
        self.found += [left] if left else []
        self._judge_rights(clusters, seen)
        self._judge_settings(clusters, seen)
        self._judge_groups(clusters)
        self._judge_failover(clusters, seen)
        self._judge_takeover(clusters, state or FlowState())
        self._judge_own_records(clusters, state)
        self._judge_parked(clusters)

    def _judge_own_records(self, clusters: Clusters, state: FlowState | None) -> None:
        """Where they may not be read, a check above says so."""
        if state is None:
            return
        flow, target, run = self._flow, clusters.target, self._network.run
        with self._judging(CHECK_OWN_RECORDS, flow.target):
            health = run(lambda: look_at_log(flow, target, state))
            self.found += judge_log(flow, health.troubles, target.foreign_records)
            self.found += run(lambda: judge_map_of(flow, target))
            journal = run(lambda: seen_journal(Sides(self._network, target, None), flow.name))
            self.found += judge_lost_journal(flow, state, journal)

    def _judge_parked(self, clusters: Clusters) -> None:
        """With the same eyes as `status`. Where these can't see, a check above says why, or this one does."""
        has_failed = any(each.result is Result.FAILED for each in self.found)
        try:
            view = self._network.run(lambda: look(self._flow, clusters))
        except (CausewayError, Unreachable, Doubt, Beaten) as trouble:
            self.found += [] if has_failed else [parked_not_looked_at(self._flow, str(trouble))]
            return
        self.found += judge_parked(self._flow, view.parked)

    def _judge_groups(self, clusters: Clusters) -> None:
        groups = self._groups
        if groups is None or groups.is_off:
            return
        admin = ClusterAdmin(self._wires["target"].endpoint)
        facts = self._network.run(lambda: look_at_groups(self._flow, groups, clusters, admin))
        self.found += judge_groups(self._flow, groups, facts, self._views)

    def _judge_failover(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, groups = self._flow, self._groups
        if groups is not None:
            lacking = self._network.run(lambda: lacking_for_failover(flow, groups, clusters, seen.mirrors))
            self.found += judge_failover(lacking, self._views)
            with self._judging(CHECK_OWN_RECORDS, flow.target):
                odd = self._network.run(lambda: journal_of(flow, clusters))
                self.found += judge_journal(odd, self._views["target"].alias)

    def _judge_takeover(self, clusters: Clusters, state: FlowState) -> None:
        """Where one is to come, or has been."""
        flow, places = self._flow, self._mirror_maker
        is_done = places is None
        if is_done and not any(each.how == "import-mm2" for each in state.set_by_hand.values()):
            return
        needed = [inherited_right(flow)] if places is None else takeover_rights(flow, places)
        lacking = self._network.run(lambda: lacking_rights(needed, clusters.wires))
        self.found += judge_takeover(lacking, self._views, is_done=is_done)

    def _judge_rights(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, views = self._flow, self._views
        creation = creation_trouble(flow, seen, ClusterAdmin(self._wires["target"].endpoint))
        facts = self._network.run(lambda: look_at_rights(flow, clusters, seen, creation))
        self.found += judge_missing(
            needed_rights(flow, seen.mirrors), facts, views, seen.mirrors, upkeep_rights(flow, seen.mirrors)
        )
        group = self._network.run(lambda: group_operations(self._wires["target"], flow.group))
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

    def _judge_settings(self, clusters: Clusters, seen: TopicsSeen) -> None:
        flow, view = self._flow, self._views["target"]
        carried = carried_settings(flow, seen, ClusterAdmin(self._wires["source"].endpoint))
        settings = self._network.run(lambda: look_at_settings(flow, clusters, view, seen, carried))
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

    def _rehearsal(self, *, read_only: bool) -> list[Finding]:
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
            found, reading = rehearse(self._flow, WireTarget(self._wires["target"]), self._views["target"])
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
