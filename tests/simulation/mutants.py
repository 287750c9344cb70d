"""The protocol with one rule taken out, each as a patch of the product's code while seeds are played.

    python -m tests.simulation.mutants          the first seed under 1,000 that finds each

Some rules back up one another: a lane that lacks one of them is stopped by the next before a reader sees
anything. Those are found by the rules of conduct (C1 to C6 in conduct.py), the others by what readers see.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from kafka.errors import KafkaError

from causeway.brokers.wire import lane_transaction as owner_module
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.map_reader import WireMapReader
from causeway.brokers.wire.positions import CommittedPositions
from causeway.core.copy import round_plan
from causeway.core.copy.ports import FetchFrom, LaneFenced, OutcomeUnknown, Refused, Unreachable
from causeway.core.copy.tail_comparison import TailComparison
from causeway.core.offsets.map_entries import MapOf
from causeway.usecases.copy import record_starts as remember_module
from causeway.usecases.copy import round_facts as round_facts_module
from causeway.usecases.copy.lane import inspect as survey_module
from causeway.usecases.copy.lane import run as run_module
from causeway.usecases.copy.lane.copying import LaneCopy
from causeway.usecases.copy.lane.inspect import LaneInspection
from causeway.usecases.copy.lane.last_records import LastRecords
from causeway.usecases.copy.lane.partition_stream import PartitionStream
from causeway.usecases.copy.lane.settle import Settling
from causeway.usecases.copy.lane.tail import TailCheck
from causeway.usecases.copy.round_facts import resolve_start, starts_at_end
from causeway.usecases.run_lock import fence as fence_module
from causeway.usecases.run_lock.command_fence import CommandFence
from tests.simulation.scenario import (
    Scenario,
    adopting_scenario_of,
    scenario_of,
    settling_anyway_scenario_of,
    starting_scenario_of,
)
from tests.simulation.seeds import Outcome, play

MOST_SEEDS = 1_000
Patches = Callable[[], list[Any]]


@dataclass(frozen=True, slots=True)
class Mutant:
    rule: str
    patches: Patches
    seed: int
    """The first that finds it; looked for again if it doesn't any more."""
    scenario_of: Callable[[int], Scenario] = scenario_of

    @contextmanager
    def at_work(self) -> Iterator[None]:
        patches = self.patches()
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()


def _position_before_claim() -> list[Any]:
    read = LaneInspection._read_positions
    before: dict[int, Any] = {}

    async def once(self: LaneInspection, asked: Any, *, stable: bool, known: Any) -> Any:
        if stable:
            return {tp: p for tp, p in before.pop(id(self)).items() if tp in asked}
        before[id(self)] = await read(self, asked, stable=False, known=known)
        return before[id(self)]

    return [patch.object(LaneInspection, "_read_positions", once)]


def _no_target_lineage() -> list[Any]:
    return [patch.object(survey_module, "target_tail_is_lost", lambda *_: False)]


def _no_source_lineage() -> list[Any]:
    async def trust(self: LaneInspection, grounds: Any) -> None:
        return None

    def anything(self: PartitionStream) -> FetchFrom:
        return FetchFrom(self.assignment.pair.source_topic_id, self.fetch_next)

    return [
        patch.object(LaneInspection, "_check_source", trust),
        patch.object(PartitionStream, "fetch_from", anything),
    ]


def _no_base_offsets() -> list[Any]:
    async def trust(self: LaneCopy, stream: Any, answer: Any) -> None:
        return None

    return [patch.object(LaneCopy, "_check_base", trust)]


def _another_connection() -> list[Any]:
    """What client libraries do: the same request again, on whatever connection there is."""
    append = LaneTransaction._append_in_line

    async def again(self: LaneTransaction, batches: Any) -> Any:
        try:
            return await append(self, batches)
        except (OutcomeUnknown, Unreachable, KafkaError):
            self._pinned.clear()
            return await append(self, batches)

    return [patch.object(LaneTransaction, "_append_in_line", again)]


def _many_transactions_in_an_epoch() -> list[Any]:
    end = LaneTransaction.end

    async def stay(self: LaneTransaction, *, commit: bool) -> None:
        async def held(*_: Any) -> Any:
            return self.producer

        with patch.object(owner_module, "init_producer", held):
            await end(self, commit=commit)

    return [patch.object(LaneTransaction, "end", stay)]


def _beaten_claims_back() -> list[Any]:
    async def insist(self: Any) -> Any:
        for _ in range(3):
            try:
                return await run(self)
            except LaneFenced:
                continue
        return await run(self)

    run = run_module._Lane.run
    return [patch.object(run_module._Lane, "run", insist)]


def _tail_is_trusted() -> list[Any]:
    async def trust(self: TailCheck, grounds: Any) -> None:
        return None

    return [patch.object(TailCheck, "settle_ends", trust)]


def _one_look_at_the_state() -> list[Any]:
    look = run_module._Lane._may_not_run

    async def once(self: Any) -> Any:
        if getattr(self._task, "generation", None) is not None and id(self) in seen:
            return None
        seen.add(id(self))
        return await look(self)

    seen: set[int] = set()
    return [patch.object(run_module._Lane, "_may_not_run", once)]


def _turns_are_only_read() -> list[Any]:
    async def ask(self: Any, _: Any) -> Any:
        return await self._may_not_run()

    return [patch.object(run_module._Lane, "_may_not_run_by_proof", ask)]


def _positions_are_only_read() -> list[Any]:
    async def only_read(self: CommittedPositions, *asked: Any, stable: bool, marked: bool = False) -> Any:
        return await read(self, *asked, stable=stable)

    read = CommittedPositions.positions
    return [patch.object(CommittedPositions, "positions", only_read)]


def _fence_claims_nothing() -> list[Any]:
    async def nothing(*_: Any) -> int:
        return 0

    return [patch.object(fence_module, "claim_all_lanes", nothing)]


def _own_fence_is_believed_to_stand() -> list[Any]:
    async def trust(*_: Any) -> None:
        return None

    return [patch.object(CommandFence, "prove", trust)]


def _lost_markers_stay_lost() -> list[Any]:
    async def leave(self: TailCheck, grounds: Any) -> None:
        return None

    return [patch.object(TailCheck, "_close_hanging", leave)]


def _last_run_is_trusted() -> list[Any]:
    async def trust(self: LastRecords, suspects: Any) -> None:
        return None

    return [patch.object(LastRecords, "prove", trust)]


def _mirror_at_rest_is_trusted() -> list[Any]:
    return [patch.object(round_plan, "_target_has_turned", lambda _: False)]


def _count_the_tail() -> list[Any]:
    """Settled without a look; then as many records of the source as lie there, whatever they are."""
    return [
        *_settle_unseen(),
        patch.object(TailComparison, "_is_next_verbatim", lambda *_: False),
        patch.object(TailComparison, "_compare_record", _taken_unseen),
    ]


def _taken_unseen(self: TailComparison, ours: Any, theirs: Any, epoch: int) -> None:
    self._taken.append(theirs)
    self._epoch = epoch


def _settle_unseen() -> list[Any]:
    async def trust(self: Settling, *_: Any) -> bool:
        return True

    return [patch.object(Settling, "_is_proved", trust)]


def _settled_tail_is_trusted() -> list[Any]:
    async def trust(self: TailCheck, grounds: Any, tp: Any) -> None:
        grounds[tp].target_next = grounds[tp].target_end

    return [patch.object(TailCheck, "_take_settled", trust)]


def _starts_are_kept_in_mind() -> list[Any]:
    """As the run has them; whoever comes after it has nothing to go by."""

    async def nothing(*arguments: Any) -> Any:
        return arguments[3]

    return [patch.object(remember_module, "_write_starts", nothing)]


def _a_start_is_asked_again() -> list[Any]:
    """Of each partition without a position and without a record: neither place nor start is looked at."""

    async def ask(memory: Any, source: Any, pairs: Any, logs: Any) -> Any:
        lost = [p for p in pairs if logs.positions[p.target] is None and not logs.left.get(p.target)]
        grown = [p for p in lost if memory.has_grown(p)]
        fresh = [p.source for p in lost if p not in grown]
        found = await resolve_start(memory.flow, source, fresh, logs.ends, logs.log_starts)
        begins = {p.source: round_facts_module._at_log_start(logs.log_starts[p.source]) for p in grown}
        return {**found, **begins}

    async def without_places(self: WireMapReader, *asked: Any) -> Any:
        return {tp: MapOf(known.runs) for tp, known in (await map_of(self, *asked)).items()}

    map_of = WireMapReader.map_of
    return [
        patch.object(round_facts_module, "_starts", ask),
        patch.object(WireMapReader, "map_of", without_places),
        *_starts_are_kept_in_mind(),
    ]


def _a_refused_answer_is_a_place() -> list[Any]:
    async def resolve(flow: Any, source: Any, fresh: Any, ends: Any, log_starts: Any) -> Any:
        found = await resolve_start(flow, source, fresh, ends, log_starts)
        at_end = await starts_at_end(source, {tp: ends[tp] for tp in fresh})
        return {tp: at_end[tp] if isinstance(start, Refused) else start for tp, start in found.items()}

    return [patch.object(round_facts_module, "resolve_start", resolve)]


def _silence_is_a_beginning() -> list[Any]:
    """A partition that couldn't be asked counts as begun with its siblings."""
    return [patch.object(remember_module, "_silent", lambda *_: frozenset())]


MUTANTS = {
    "claim before position": Mutant("the position is read before the claim", _position_before_claim, 0),
    "lineage of the target": Mutant("nobody asks whether the target lost its tail", _no_target_lineage, 10),
    "lineage of the source": Mutant("nobody asks whether the source lost its tail", _no_source_lineage, 154),
    "base offset": Mutant("base offsets of appends aren't looked at (R6)", _no_base_offsets, 48),
    "one connection": Mutant("a lost connection doesn't end the transaction (R4)", _another_connection, 159),
    "one transaction per epoch": Mutant(
        "v1: no new claim after a transaction", _many_transactions_in_an_epoch, 2
    ),
    "a beaten owner ends": Mutant("a beaten owner claims back (R7)", _beaten_claims_back, 2),
    "examine the tail": Mutant("what lies after the position is trusted", _tail_is_trusted, 3),
    "who may run, again": Mutant("the state isn't read again after the claim", _one_look_at_the_state, 0),
    "a turn is proved": Mutant(
        "after the claim any broker that answers is believed about turns", _turns_are_only_read, 0
    ),
    "positions are proved": Mutant(
        "after the claim any broker that answers is believed about positions", _positions_are_only_read, 0
    ),
    "a fence claims": Mutant("a fence is written but claims no lane", _fence_claims_nothing, 15),
    "a command proves its fence": Mutant(
        "a command that was frozen doesn't ask whether its fence still stands",
        _own_fence_is_believed_to_stand,
        4,
        adopting_scenario_of,
    ),
    "lost markers": Mutant(
        "a transaction that a lost marker left open stays open", _lost_markers_stay_lost, 10
    ),
    "prove the last run": Mutant(
        "after an election the last run isn't read again", _last_run_is_trusted, 105
    ),
    "compare, don't count": Mutant(
        "a settled tail is counted, not compared", _count_the_tail, 215, settling_anyway_scenario_of
    ),
    "prove, then settle": Mutant(
        "what is open is committed without a look at it", _settle_unseen, 215, settling_anyway_scenario_of
    ),
    "a settled tail moves the position": Mutant(
        "what was settled is skipped", _settled_tail_is_trusted, 20, settling_anyway_scenario_of
    ),
    "a mirror at rest": Mutant("a lost tail waits for the next record", _mirror_at_rest_is_trusted, 78),
    "write the start down": Mutant(
        "a first round dies, and nobody has written down where it began",
        _starts_are_kept_in_mind,
        0,
        starting_scenario_of,
    ),
    "ask once": Mutant(
        "a partition without records that lost its position begins by the start rule of that day",
        _a_start_is_asked_again,
        2,
        starting_scenario_of,
    ),
    "a refusal isn't a place": Mutant(
        "a source that refuses to say where a time begins has nothing as late",
        _a_refused_answer_is_a_place,
        30,
        starting_scenario_of,
    ),
    "silence isn't a beginning": Mutant(
        "a partition that couldn't be asked where it begins has begun",
        _silence_is_a_beginning,
        11,
        starting_scenario_of,
    ),
}


def find(mutant: Mutant, *, most: int = MOST_SEEDS, with_conduct: bool = True) -> Outcome | None:
    """The first failing seed, the known one tried first."""
    with mutant.at_work():
        for seed in (mutant.seed, *range(most)):
            outcome = play(seed, with_conduct=with_conduct, scenario_of=mutant.scenario_of)
            if seed % 50 == 0:
                gc.collect()
            if outcome.failure is not None:
                if not outcome.is_broken_promise:
                    raise AssertionError(
                        f"without {mutant.rule!r} a seed fails for another reason: {outcome}"
                    )
                return outcome
    return None


def found_by() -> list[tuple[str, str]]:
    """Rule and what found its absence, for docs/proof.md."""
    found = {mutant.rule: find(mutant) for mutant in MUTANTS.values()}
    return [
        (rule, quoted(outcome.scenario.seed, f"{outcome.failure}") if outcome else "nothing")
        for rule, outcome in found.items()
    ]


def quoted(seed: int, failure: str) -> str:
    """The failure as it was printed; it has single backticks itself."""
    return f"seed {seed}: ``{failure}``"


def main(names: list[str]) -> int:
    """With `--readers` nobody looks at conduct."""
    missed, with_conduct = 0, "--readers" not in names
    for name in [n for n in names if n in MUTANTS] or MUTANTS:
        began = time.monotonic()
        found = find(MUTANTS[name], with_conduct=with_conduct)
        missed += found is None
        print(f"{name}: {found or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)"[:300], flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
