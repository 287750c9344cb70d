"""The why report: of every group and partition, whether the target knows where it goes on, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from causeway.core.group_sync import IS_WELL, NOBODYS_BUSINESS, Outcome, Verdict
from causeway.core.group_task import GroupTaskResult

REPORT_VERSION = 1
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
    def untold(self) -> int:
        """Places that were seen to, and of which their group's counts alone are told."""
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
            "groups_count": len(self.groups),
            "excluded_count": len(self.excluded),
        }
        if with_places:
            summary["groups"] = [self._group_as_dict(group) for group in (*self.groups, *self.excluded)]
            summary["excluded"] = list(self.excluded)
            summary["partitions"] = [place_as_dict(row) for row in self.result.rows]
            summary["partitions_untold"] = self.untold
        return summary

    def _group_as_dict(self, group: str) -> dict[str, object]:
        outcomes = {str(outcome): count for outcome, count in sorted(self.of_group(group).items())}
        why = self.result.refused.get(group) or self.excluded.get(group)
        return {"group": group, "outcomes": outcomes, **({"why": why} if why else {})}


def place_as_dict(row: Verdict) -> dict[str, object]:
    return {
        "group": row.group,
        "source": str(row.source),
        "target": str(row.target),
        "outcome": str(row.outcome),
        "source_offset": row.source_next,
        "target_offset": row.target_next,
        "before": row.before,
        "committed": row.commit is not None,
        "why": row.why,
    }


def report_lines(report: GroupsReport, *, names_excluded: bool = True) -> Iterator[str]:
    """For a task's log: the totals, then the groups that need a look, a line each; then the excluded ones."""
    did = f"{report.result.checkpoints:,} checkpoints, {report.result.commits:,} offsets committed"
    yield (
        f"{report.flow}: {len(report.groups):,} groups, {len(report.excluded):,} excluded; {did}, "
        f"{report.result.offset_syncs:,} offset syncs, {report.seconds:.1f} s"
    )
    for outcome, count in sorted(report.outcomes.items()):
        yield f"{count:,} {outcome}"
    fine = IS_WELL | NOBODYS_BUSINESS
    wanting = [group for group in report.groups if not fine.issuperset(report.of_group(group))]
    for group in wanting[:_SHOWN_GROUPS]:
        yield f"{group}: {spelled(report.of_group(group))}{_example(report, group)}"
    if len(wanting) > _SHOWN_GROUPS:
        yield f"and {len(wanting) - _SHOWN_GROUPS:,} groups more, in the report"
    if report.untold:
        yield f"{report.untold:,} places are counted only, not told one by one"
    if names_excluded:
        yield from _excluded_lines(report)


def _excluded_lines(report: GroupsReport) -> Iterator[str]:
    """A line for each reason, with as many names as a log can bear."""
    by_reason: dict[str, list[str]] = {}
    for group, why in report.excluded.items():
        by_reason.setdefault(why, []).append(group)
    for why, groups in by_reason.items():
        shown = ", ".join(groups[:_SHOWN_GROUPS])
        more = len(groups) - _SHOWN_GROUPS
        yield f"excluded, {why}: {shown}{f' and {more:,} more' if more > 0 else ''}"


def spelled(outcomes: Counter[Outcome]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))


def _example(report: GroupsReport, group: str) -> str:
    if group in report.result.refused:
        return f": {report.result.refused[group]}"
    for row in report.result.rows:
        if row.group == group and row.outcome not in IS_WELL | NOBODYS_BUSINESS:
            return f" (as {row.source}: {row.why})" if row.why else f" (as {row.source})"
    return ""
