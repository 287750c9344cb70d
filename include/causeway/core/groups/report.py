"""The why report: of every group and partition, whether the target knows where it goes on, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from causeway.core.groups.sync_rules import IS_WELL, NOBODYS_BUSINESS, Outcome, Verdict
from causeway.core.groups.task import GroupTaskResult
from causeway.core.groups.unprotected import Unprotected, unprotected_lines
from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import rfc3339

REPORT_VERSION = 1
WOULD_BE_SYNCED = "would be synced"
_SHOWN_GROUPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsReport:
    flow: str
    began_at: str
    seconds: float
    wrote: bool
    """False: looked only; what it says of commits is what a run would do."""
    syncs_offsets: bool
    groups: tuple[str, ...]
    """Those that the flow selects."""
    excluded: Mapping[str, str]
    """Groups of the source that the lists leave out, and why; Causeway's own among them."""
    result: GroupTaskResult = field(default_factory=GroupTaskResult)
    at_ms: int = 0
    """When it was made: ages count back from there."""
    fenced: str = ""
    """By whom and why; empty: the flow is open. While it is fenced, nothing is committed."""

    @property
    def outcomes(self) -> Counter[Outcome]:
        """Of all selected groups and partitions; `no commits` counts groups."""
        total: Counter[Outcome] = Counter()
        for group in self.groups:
            total.update(self.of_group(group))
        return total

    def of_group(self, group: str) -> Counter[Outcome]:
        if group in self.result.refused:
            return Counter({Outcome.REFUSED: 1})
        if group in self.excluded:
            return Counter({Outcome.EXCLUDED: 1})
        return self.result.counts.get(group) or Counter({Outcome.NO_COMMITS: 1})

    @property
    def would_commit(self) -> int:
        """Offsets that a run would commit; of a report that only looked."""
        return 0 if self.wrote else sum(counts.total() for counts in self.result.due.values())

    def in_words(self, group: str | None = None) -> Counter[str]:
        """The outcomes of one group, or of all, as they are: what only a run would commit isn't synced."""
        outcomes = self.outcomes if group is None else self.of_group(group)
        due = self.result.due if group is None else {group: self.result.due.get(group, Counter())}
        waiting = 0 if self.wrote else sum(counts[Outcome.SYNCED] for counts in due.values())
        words = Counter({str(outcome): count for outcome, count in outcomes.items()})
        words[str(Outcome.SYNCED)] -= waiting
        words[WOULD_BE_SYNCED] += waiting
        return +words

    def last_synced(self, group: str) -> str | None:
        at_ms = self.result.synced_ms.get(group)
        return None if at_ms is None else rfc3339(at_ms)

    @property
    def unprotected(self) -> Unprotected:
        """As the rows tell; a sync has just protected those that it committed for."""
        own = {row.group for row in self.result.rows if row.outcome is Outcome.MOVED_ON}
        waiting = {
            row.group
            for row in self.result.rows
            if row.stands_as_it_left and not (self.wrote and row.commit is not None)
        }
        return Unprotected(tuple(sorted(waiting - own)), tuple(sorted(own)))

    @property
    def untold(self) -> int:
        """Places that were judged, and of which only their group's counts are listed."""
        return sum(counts.total() for counts in self.result.counts.values()) - len(self.result.rows)

    def as_dict(self, *, with_places: bool = True) -> dict[str, object]:
        summary: dict[str, object] = {
            "version": REPORT_VERSION,
            "flow": self.flow,
            "began_at": self.began_at,
            "seconds": round(self.seconds, 3),
            "wrote": self.wrote,
            "sync.group.offsets.enabled": self.syncs_offsets,
            "outcomes": {str(outcome): count for outcome, count in sorted(self.outcomes.items())},
            "checkpoints": self.result.checkpoints,
            "offset_syncs": self.result.offset_syncs,
            "commits": self.result.commits,
            "would_commit": self.would_commit,
            "groups_count": len(self.groups),
            "excluded_count": len(self.excluded),
        }
        if with_places:
            summary["groups"] = [self._group_as_dict(group) for group in (*self.groups, *self.excluded)]
            summary["excluded"] = list(self.excluded)
            summary["partitions"] = [place_as_dict(row, wrote=self.wrote) for row in self.result.rows]
            summary["partitions_untold"] = self.untold
            summary["unprotected"] = self.unprotected.as_dict()
        return summary

    def _group_as_dict(self, group: str) -> dict[str, object]:
        outcomes = {str(outcome): count for outcome, count in sorted(self.of_group(group).items())}
        why = self.result.refused.get(group) or self.excluded.get(group)
        synced = {} if group in self.excluded else {"last_synced": self.last_synced(group)}
        return {"group": group, "outcomes": outcomes, **synced, **({"why": why} if why else {})}


def place_as_dict(row: Verdict, *, wrote: bool) -> dict[str, object]:
    return {
        "group": row.group,
        "source": str(row.source),
        "target": str(row.target),
        "outcome": str(row.outcome),
        "source_offset": row.source_next,
        "target_offset": row.target_next,
        "before": row.before,
        "committed": wrote and row.commit is not None,
        "would_commit": not wrote and row.commit is not None,
        "last_synced": None if row.synced_ms is None else rfc3339(row.synced_ms),
        "why": row.why,
    }


def report_lines(report: GroupsReport, *, names_excluded: bool = True) -> Iterator[str]:
    """For a task's log: the totals, then the groups that need a look, a line each; then the excluded ones."""
    yield (
        f"{report.flow}: {len(report.groups):,} groups, {len(report.excluded):,} excluded; {_did(report)}, "
        f"{report.seconds:.1f} s"
    )
    yield from unprotected_lines(report.flow, report.unprotected)
    for words, count in sorted(report.in_words().items()):
        yield f"{count:,} {words}"
    fine = IS_WELL | NOBODYS_BUSINESS
    wanting = [group for group in report.groups if not fine.issuperset(report.of_group(group))]
    for group in wanting[:_SHOWN_GROUPS]:
        yield f"{group}: {spelled(report.in_words(group))}{_example(report, group)}"
    if len(wanting) > _SHOWN_GROUPS:
        yield f"and {len(wanting) - _SHOWN_GROUPS:,} groups more, in the report"
    if report.untold:
        yield f"{report.untold:,} places are only counted, not listed"
    if names_excluded:
        yield from _excluded_lines(report)


def _did(report: GroupsReport) -> str:
    done = report.result
    if not report.wrote:
        return (
            f"looked only: nothing was written, {counted(report.would_commit, 'offset')} would be committed"
        )
    return (
        f"{done.checkpoints:,} checkpoints, {done.commits:,} offsets committed, "
        f"{done.offset_syncs:,} offset syncs"
    )


def _excluded_lines(report: GroupsReport) -> Iterator[str]:
    """A line for each reason, with as many names as a log can bear."""
    by_reason: dict[str, list[str]] = {}
    for group, why in report.excluded.items():
        by_reason.setdefault(why, []).append(group)
    for why, groups in by_reason.items():
        shown = ", ".join(groups[:_SHOWN_GROUPS])
        more = len(groups) - _SHOWN_GROUPS
        yield f"excluded, {why}: {shown}{f' and {more:,} more' if more > 0 else ''}"


def spelled(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))


def _example(report: GroupsReport, group: str) -> str:
    if group in report.result.refused:
        return f": {report.result.refused[group]}"
    for row in report.result.rows:
        if row.group == group and row.outcome not in IS_WELL | NOBODYS_BUSINESS:
            return f" (as {row.source}: {row.why})" if row.why else f" (as {row.source})"
    return ""
