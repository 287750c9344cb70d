"""What was recorded, as the tree's own readers understand it, in plain dicts of what dfef452 knew.

`expected.json` holds what these functions gave when dfef452 itself ran them. So they may be adapted to other
names and shapes (`fences` in place of `fence`, a place per partition in place of one per topic), as long as
they go on giving the same words: a fact that dfef452 knew and that is unknown now is a broken format.
What later versions know besides is left out here.
"""

from __future__ import annotations

import json
from typing import Any

from causeway.core.groups.stamp import Stamp, parse_stamp, stamp_beside
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal import journal
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.remaining_work import Remaining, left_to_apply, left_to_roll_back
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets import mm2_offset_syncs
from causeway.core.offsets.map_entries import MapEntries
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.records.mm2_formats import decode_checkpoint, decode_offset_sync
from causeway.core.state import flow_state
from causeway.core.state.fences import Fence
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_state import FlowState
from causeway.core.state.gap_ledger import AcceptedGap
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.parked import LastParked
from causeway.core.state.position import Position, parse_position
from causeway.core.topics.heartbeats import decode_heartbeat
from causeway.core.topics.quarantine import origin_of
from tests.golden.stored import Golden

Facts = dict[str, Any]


def facts_of(golden: Golden) -> Facts:
    plain: Facts = as_plain(
        {
            "flows": {name: flow_facts(state) for name, state in flow_states(golden).items()},
            "maps": {
                topic: map_facts(golden, topic) for topic in golden.topics_named("causeway-offset-map.")
            },
            "positions": positions(golden),
            "stamps": stamps(golden),
            "journal": journal_facts(golden),
            "checkpoints": checkpoints(golden),
            "offset_syncs": offset_syncs(golden),
            "heartbeats": heartbeats(golden),
            "quarantines": quarantines(golden),
            "inherited": inheritances(golden),
        }
    )
    return plain


def as_plain(facts: object) -> Any:
    """As JSON gives it back: lists for tuples, text for ids."""
    return json.loads(json.dumps(facts, default=str))


# The flows topic


def flow_states(golden: Golden) -> dict[str, FlowState]:
    states: dict[str, FlowState] = {}
    for r in golden.records(FLOWS_TOPIC):
        states = flow_state.fold(states, LogRecord(r.offset, r.timestamp_ms, r.key or b"", r.value))
    return states


def standing(state: FlowState) -> list[Fence]:
    """All fences that stand."""
    return list(state.standing)


def flow_facts(state: FlowState) -> Facts:
    return {
        "generation": state.generation,
        "run": run_facts(state),
        "running": state.running is not None,
        "last_sign_ms": state.last_sign_ms,
        "ended": state.ended,
        "fences": [fence_facts(fence) for fence in standing(state)],
        "most_lanes": state.most_lanes,
        "lanes_varied": state.lanes_varied,
        "parked": None if state.parked is None else parked_facts(state.parked),
        "pairs": {topic: pair_facts(pair) for topic, pair in sorted(state.pairs.items())},
        "forgotten": sorted([topic, str(ids[0]), str(ids[1])] for ids, topic in state.forgotten.items()),
        "gaps": [gap_facts(gap) for gap in state.gaps.values()],
        "set_by_hand": [entry.as_dict() for entry in state.set_by_hand.values()],
        "clusters": [state.source_cluster_id, state.target_cluster_id],
        "settling": sorted(
            [str(note.target), str(note.target_topic_id), note.settled_to] for note in state.settling
        ),
        "acls": sorted([str(acl), at] for acl, at in state.acls.items()),
    }


def run_facts(state: FlowState) -> Facts | None:
    run = state.run
    if run is None:
        return None
    return {
        "generation": run.generation,
        "holder": run.holder,
        "run_id": run.run_id,
        "lanes": run.lanes,
        "since_ms": run.since_ms,
    }


def fence_facts(fence: Fence) -> Facts:
    return {
        "generation": fence.generation,
        "by": fence.by,
        "because": fence.because,
        "since_ms": fence.since_ms,
        "token": fence.token if fence.is_at_work else "",  # dfef452 gave one to commands only
    }


def parked_facts(parked: LastParked) -> Facts:
    return {
        "generation": parked.generation,
        "at_ms": parked.at_ms,
        "more": parked.more,
        "partitions": {
            str(tp): [str(why.reason), why.facts, why.remedy] for tp, why in parked.partitions.items()
        },
    }


def pair_facts(pair: KnownPair) -> Facts:
    return {
        "source_topic": pair.source_topic,
        "source_topic_id": pair.source_topic_id,
        "target_topic_id": pair.target_topic_id,
        "partitions": pair.partitions,
        "adopted_at": pair.adopted_at,
        "source_emptied": pair.source_emptied,
    }


def gap_facts(accepted: AcceptedGap) -> Facts:
    gap = accepted.gap
    return {
        "kind": gap.kind.name,
        "source": str(gap.source),
        "target": str(accepted.target),
        "first": gap.first,
        "end": gap.end,
        "log_start": gap.log_start,
        "source_topic_id": accepted.source_topic_id,
        "by": accepted.by,
        "because": accepted.because,
        "at_ms": accepted.at_ms,
    }


# The offset map


def map_entries(golden: Golden, topic: str) -> MapEntries:
    entries = MapEntries()
    for r in golden.records(topic):
        entries.take(r.key or b"", r.value)
    return entries


def map_facts(golden: Golden, topic: str) -> Facts:
    entries = map_entries(golden, topic)
    return {
        str(target): [
            {"merged": entry.is_merged, "runs": [map_run_facts(run) for run in entry.runs]}
            for entry in entries.entries(target)
        ]
        for target in sorted(entries.targets)
    }


def map_run_facts(run: MappedRange) -> Facts:
    return {
        "source": [run.source_first, run.source_next],
        "target": [run.target_first, run.target_next],
        "segments": run.segments,
        "holes_before": run.holes_before,
        "ms": [run.first_timestamp_ms, run.last_timestamp_ms],
        "generation": run.generation,
        "ids": [run.source_topic_id, run.target_topic_id],
        "epochs": [run.source_epoch, run.target_epoch],
    }


# Committed offsets


def positions(golden: Golden) -> Facts:
    """Of all flows, but for the mark on the flows topic, which is nobody's position."""
    return {
        group: {
            place: position_facts(parse_position(told["offset"], told["metadata"]))
            for place, told in offsets.items()
            if told["topic"] != FLOWS_TOPIC
        }
        for group, offsets in golden.groups.items()
        if group.startswith("causeway.")
    }


def position_facts(found: object) -> Facts:
    assert isinstance(found, Position), found
    return {
        "source_next": found.source_next,
        "target_next": found.target_next,
        "source_topic_id": found.source_topic_id,
        "target_topic_id": found.target_topic_id,
        "source_epoch": found.source_epoch,
        "target_epoch": found.target_epoch,
        "generation": found.generation,
        "producer_id": found.producer_id,
        "time_ms": found.time_ms,
        "records": found.records,
        "aborted_records": found.aborted_records,
    }


def stamps(golden: Golden) -> Facts:
    """Of the groups that aren't flows'; of an offset without one: the group's own words."""
    return {
        group: {place: _stamp(told["offset"], told["metadata"]) for place, told in offsets.items()}
        for group, offsets in golden.groups.items()
        if not group.startswith("causeway.")
    }


def _stamp(offset: int, metadata: str) -> Facts:
    stamp = stamp_beside(offset, metadata)
    assert stamp == parse_stamp(metadata), "each lies beside the offset that it was written for"
    return {"offset": offset, **({"own_words": metadata} if stamp is None else _stamp_facts(stamp))}


def _stamp_facts(stamp: Stamp) -> Facts:
    return {
        "flow": stamp.flow,
        "source_next": stamp.source_next,
        "target_next": stamp.target_next,
        "time_ms": stamp.time_ms,
        "metadata": stamp.metadata,
    }


# The journal of failovers


def journal_facts(golden: Golden) -> Facts:
    told = journal.Journal()
    for r in golden.records(FAILOVERS_TOPIC):
        told = journal.fold(told, r.offset, r.key, r.value)
    return {
        "runs": [failover_facts(run) | left_facts(run, golden) for run in told.runs.values()],
        "failbacks": [failback_facts(run) for run in told.failbacks.values()],
        "drills": [{"flow": run.flow, "run": run.run, **run.as_dict()} for run in told.drills.values()],
    }


def failover_facts(run: journal.FailoverRun) -> Facts:
    return {
        "run": run.run,
        "flow": run.flow,
        "wish": run.wish.as_dict(),
        "plan": run.plan_hash,
        "by": run.by,
        "begun_ms": run.begun_ms,
        "status": str(run.status),
        "shifts": {
            group: {
                str(tp): [shift.before and [shift.before.offset, shift.before.metadata], shift.after]
                for tp, shift in sorted(shifts.items())
            }
            for group, shifts in sorted(run.shifts.items())
        },
        "left_alone": run.left_alone,
        "is_agreed": run.is_agreed,
        "generation": run.generation,
        "ended_ms": run.ended_ms,
        "facts": dict(run.facts),
        "agreement": run.agreement,
        "fence_words": run.fence_words,
    }


def left_facts(run: journal.FailoverRun, golden: Golden) -> Facts:
    """What the same command, or a rollback, would do now: by the marks beside the groups' offsets."""
    held = {
        group: {
            TopicPartition(told["topic"], told["partition"]): Committed(told["offset"], told["metadata"])
            for told in offsets.values()
        }
        for group, offsets in golden.groups.items()
    }
    found = {"left_to_apply": left_to_apply(run, held), "left_to_roll_back": left_to_roll_back(run, held)}
    return {what: remaining_facts(remaining) for what, remaining in found.items()}


def remaining_facts(remaining: Remaining) -> Facts:
    return {
        "commit": {
            group: {str(tp): [c.offset, c.metadata] for tp, c in sorted(offsets.items())}
            for group, offsets in sorted(remaining.to_commit.items())
        },
        "forget": {group: sorted(map(str, places)) for group, places in sorted(remaining.to_forget.items())},
        "astray": sorted([each.group, str(each.target), each.at] for each in remaining.astray),
    }


def failback_facts(run: Any) -> Facts:
    return {
        "run": run.run,
        "flow": run.flow,
        "reverse": run.reverse,
        "way": str(run.way),
        "step": str(run.step),
        "by": run.by,
        "begun_ms": run.begun_ms,
        "at_ms": run.at_ms,
        "facts": dict(run.facts),
        "words": [run.fence_words, run.stand_by_words],
    }


# What others read, and what was taken from them


def checkpoints(golden: Golden) -> Facts:
    found: Facts = {}
    for topic in _ending(golden, "checkpoints.internal"):
        decoded = [decode_checkpoint(r.key, r.value) for r in golden.records(topic)]
        found[topic] = [[c.group, str(c.target), c.source_next, c.target_next, c.metadata] for c in decoded]
    return found


def offset_syncs(golden: Golden) -> Facts:
    found: Facts = {}
    for topic in golden.topics_named("mm2-offset-syncs."):
        decoded = [decode_offset_sync(r.key, r.value) for r in golden.records(topic)]
        found[topic] = [[str(s.source), s.source_offset, s.target_offset] for s in decoded]
    return found


def heartbeats(golden: Golden) -> Facts:
    found: Facts = {}
    for topic in _ending(golden, "heartbeats"):
        decoded = [decode_heartbeat(r.key or b"", r.value or b"") for r in golden.records(topic)]
        found[topic] = [[beat.source, beat.target, beat.at_ms] for beat in decoded]
    return found


def quarantines(golden: Golden) -> Facts:
    found: Facts = {}
    for topic in golden.topics_named("causeway-quarantine."):
        origins = [origin_of(r.headers) for r in golden.records(topic)]
        found[topic] = [
            origin and [str(origin.source), str(origin.target), origin.source_topic_id, origin.offset]
            for origin in origins
        ]
    return found


def inheritances(golden: Golden) -> Facts:
    found: Facts = {}
    for topic in golden.topics_named("causeway-inherited."):
        for r in golden.records(topic):
            parsed = mm2_offset_syncs.parse_inherited(r.key, r.value)
            assert parsed is not None
            target, told = parsed
            found.setdefault(topic, {})[str(target)] = {
                "ids": told.ids,
                "source_next": told.source_next,
                "target_next": told.target_next,
                "points": told.points,
            }
    return found


def _ending(golden: Golden, end: str) -> list[str]:
    return [topic for topic in golden.internal_topics if topic.endswith(end)]
