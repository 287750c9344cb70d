"""What a run writes down before its first record: where partitions begin, and which pairs are its own.

Starts first, then pairs: a run that dies in between has asked the start rule, and the next one goes by its
answer. Of two runs that asked at the same time the first answer in the log counts, for both of them; so the
log is read up to what was written, and the lanes begin where it says.

A partition of which the source's brokers reported nothing in this round doesn't hold up its siblings, and
nothing is made up for it. Of a new topic it is remembered as not begun, so that a later round asks the start
rule. Of one that has grown it begins at offset 0: what retention takes before it can be read is a gap.
"""

from __future__ import annotations

from dataclasses import replace

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.round_plan import RoundPlan, with_starts
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import pair_record
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.start_ledger import PairKey, StartAt, key_of, start_records
from causeway.usecases.copy.planning import Landscape, pairs_to_remember

Starts = dict[PairKey, dict[int, StartAt]]
_AT_ITS_BEGINNING = StartAt(offset=SourceOffset(0), epoch=-1)


async def record_starts(
    flow: Flow,
    generation: Generation,
    target: WireTarget,
    landscape: Landscape,
    plan: RoundPlan,
    known: dict[str, KnownPair],
) -> RoundPlan:
    """The same plan, with starts that are written down. `known` grows by the pairs that are new."""
    starts, pairs = _new_starts(plan), dict[str, KnownPair]()
    for name, pair in pairs_to_remember(flow, landscape, known).items():
        before, silent = known.get(name), _silent(name, pair, plan)
        if before is not None:
            grown = {
                n
                for n in silent
                if n >= before.partitions and not _is_led_back(flow, landscape, name, pair, n)
            }
            starts.setdefault((name, *pair.ids), {}).update(dict.fromkeys(grown, _AT_ITS_BEGINNING))
            pairs[name] = pair
        elif len(silent) < pair.partitions:
            pairs[name] = replace(pair, not_begun=silent)
    plan = await _write_starts(flow, generation, target, plan, starts)
    for name, pair in pairs.items():
        key, value = pair_record(flow.name, name, pair)
        await target.append_plain(FLOWS_TOPIC, key, value)
        known[name] = pair
    return plan


def _new_starts(plan: RoundPlan) -> Starts:
    new: Starts = {}
    for facts in plan.partitions:
        if facts.begins_now and facts.start is not None:
            new.setdefault(key_of(facts.pair), {})[facts.pair.target.partition] = facts.start
    return new


def _silent(target_topic: str, pair: KnownPair, plan: RoundPlan) -> frozenset[int]:
    """Its partitions that nobody could say in this round where they begin."""
    read = {facts.pair.target for facts in plan.partitions}
    return frozenset(n for n in range(pair.partitions) if TopicPartition(target_topic, n) not in read)


def _is_led_back(flow: Flow, landscape: Landscape, target_topic: str, known: KnownPair, number: int) -> bool:
    """Where another flow leads the other way, nothing begins by itself."""
    pair = Pair(
        source=TopicPartition(known.source_topic, number),
        target=TopicPartition(target_topic, number),
        source_topic_id=known.source_topic_id,
        target_topic_id=known.target_topic_id,
    )
    return landscape.other_way is not None and landscape.other_way.of(flow, pair) is not None


async def _write_starts(
    flow: Flow, generation: Generation, target: WireTarget, plan: RoundPlan, new: Starts
) -> RoundPlan:
    at_ms = target.wire.network.time_ms()
    records = [
        record
        for key, starts in new.items()
        for record in start_records(flow.name, key, starts, generation=generation, at_ms=at_ms)
    ]
    if not records:
        return plan
    await target.append_many(FLOWS_TOPIC, records)
    return with_starts(plan, await target.flow_state(flow.name))
