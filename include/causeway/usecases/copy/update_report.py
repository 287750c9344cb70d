"""Bring a run's report up to what a round's plan read back: positions, lag, and who doesn't move."""

from __future__ import annotations

from causeway.core.copy.report import PartitionReport, RunReport, parked_dict
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.run_lock.ownership import Say


def update_report(report: RunReport, plan: RoundPlan, say: Say) -> None:
    """What is committed is the last word; what is parked or waits is reported once."""
    for facts in plan.partitions:
        position = facts.standing
        records, repeats = (position.records, position.aborted_records) if position else (0, 0)
        mine = report.partitions.get(facts.pair.source)
        if mine is None or mine.source_from < 0:  # until now it only waited: this is where its counts begin
            mine = report.partitions[facts.pair.source] = PartitionReport(
                source=str(facts.pair.source),
                target=str(facts.pair.target),
                source_from=facts.source_next,
                source_next=facts.source_next,
                last_stable=facts.last_stable,
                records_before=records,
                repeats_before=repeats,
            )
        mine.last_stable, mine.source_next = facts.last_stable, facts.source_next
        mine.read_back(records, repeats)
        if not facts.lag:
            mine.later = ""  # what it waited for has come
    for tp in report.parked_by_plan - plan.parked.keys():
        report.partitions[tp].parked = None
    report.parked_by_plan = frozenset(plan.parked)
    for tp, parked in plan.parked.items():
        mine = _of_idle(report, tp)
        if mine.parked is None:
            say(f"{report.flow}: parked {tp}: {parked}")
        mine.parked = parked_dict(parked)
    for tp in report.waits_by_plan - plan.later.keys():
        report.partitions[tp].later = ""
    report.waits_by_plan = frozenset(plan.later)
    for tp, why in plan.later.items():
        mine = _of_idle(report, tp)
        if mine.later != why:
            say(f"{report.flow}: waits {tp}: {why}")
        mine.later = why


def _of_idle(report: RunReport, tp: TopicPartition) -> PartitionReport:
    """The line of a partition whose position this round couldn't tell."""
    unknown = PartitionReport(source=str(tp), target="", source_from=-1, source_next=-1, last_stable=-1)
    return report.partitions.setdefault(tp, unknown)
