"""A share of the work on a flow's consumer groups: what a task gets, and what it reports.

Both travel to Spark's executors and back, so they are plain values. A task has some of the flow's partitions,
those whose runs lie in the same partitions of the offset map, and all of its groups: so no run is read
twice, and nothing that grows with groups times partitions passes through the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from causeway.core.groups.sync_rules import IS_WELL, Outcome, Verdict
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.offsets.offset_map import map_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    flow: str
    position_group: str
    """Whose committed offsets are the flow's positions."""
    map_topic: str
    checkpoints_topic: str
    syncs_topic: str
    topics: TopicFilter
    """Of the flow: what it matches and isn't among the pairs hasn't begun yet."""
    rules: FlowGroups
    groups: tuple[str, ...]
    """Those that the flow selects, of the source."""
    active: frozenset[str]
    """Those with members on the target."""
    pairs: tuple[Pair, ...]
    unfit: tuple[tuple[TopicPartition, Outcome, str], ...] = ()
    """Source partitions that are known already to have no answer, and why."""
    is_whole: bool = True
    """The only task: it also sees what groups have committed elsewhere."""
    writes: bool = False
    most_rows: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTaskResult:
    counts: dict[str, Counter[Outcome]] = field(default_factory=dict)
    """By group; of groups that have committed something."""
    rows: tuple[Verdict, ...] = ()
    """Not all of them, if they are more than the task may tell: then those first that aren't well."""
    due: dict[str, Counter[Outcome]] = field(default_factory=dict)
    """Of `counts`: places with an offset to commit. Of a task that writes, those that it has committed."""
    synced_ms: dict[str, int] = field(default_factory=dict)
    """By group: the newest commit of this flow that the target holds."""
    refused: dict[str, str] = field(default_factory=dict)
    """Groups that couldn't be asked, and the broker's reason."""
    checkpoints: int = 0
    offset_syncs: int = 0
    commits: int = 0


def cut_task(task: GroupTask, *, shares: int, map_partitions: int, most_rows: int) -> tuple[GroupTask, ...]:
    """The same work in several tasks, by partition of the map; empty ones are left out."""
    if shares <= 1:
        return (task,)
    pairs: dict[int, list[Pair]] = {}
    for pair in task.pairs:
        pairs.setdefault(map_partition(pair.target, map_partitions) % shares, []).append(pair)
    return tuple(
        replace(
            task,
            pairs=tuple(mine),
            unfit=task.unfit if number == min(pairs) else (),
            is_whole=False,
            most_rows=most_rows,
        )
        for number, mine in sorted(pairs.items())
    )


def told(
    verdicts: Iterable[Verdict], most_rows: int
) -> tuple[dict[str, Counter[Outcome]], tuple[Verdict, ...]]:
    """Counts of all, and rows of as many as may be listed."""
    counts: dict[str, Counter[Outcome]] = {}
    well: list[Verdict] = []
    others: list[Verdict] = []
    for verdict in verdicts:
        counts.setdefault(verdict.group, Counter())[verdict.outcome] += 1
        (well if verdict.outcome in IS_WELL else others).append(verdict)
    return counts, tuple((others + well)[:most_rows])


def due(verdicts: Iterable[Verdict]) -> dict[str, Counter[Outcome]]:
    """By group: how many have an offset to commit."""
    found: dict[str, Counter[Outcome]] = {}
    for verdict in verdicts:
        if verdict.commit is not None:
            found.setdefault(verdict.group, Counter())[verdict.outcome] += 1
    return found


def last_synced(verdicts: Iterable[Verdict]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.synced_ms is not None:
            newest[verdict.group] = max(verdict.synced_ms, newest.get(verdict.group, 0))
    return newest


def together(results: Sequence[GroupTaskResult]) -> GroupTaskResult:
    """What all tasks did."""
    newest: dict[str, int] = {}
    for result in results:
        for group, at_ms in result.synced_ms.items():
            newest[group] = max(at_ms, newest.get(group, 0))
    return GroupTaskResult(
        counts=_sums(result.counts for result in results),
        due=_sums(result.due for result in results),
        synced_ms=newest,
        rows=tuple(row for result in results for row in result.rows),
        refused={group: why for result in results for group, why in result.refused.items()},
        checkpoints=sum(result.checkpoints for result in results),
        offset_syncs=sum(result.offset_syncs for result in results),
        commits=sum(result.commits for result in results),
    )


def _sums(shares: Iterable[Mapping[str, Counter[Outcome]]]) -> dict[str, Counter[Outcome]]:
    """By group."""
    sums: dict[str, Counter[Outcome]] = {}
    for share in shares:
        for group, mine in share.items():
            sums.setdefault(group, Counter()).update(mine)
    return sums
