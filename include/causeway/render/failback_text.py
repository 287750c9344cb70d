"""A failback's plan and what became of it, as text for a terminal, a task's log and an approval.

What is destroyed stands first, then who is in the way, then the tables, the dearest rows first. What is too
long is cut by rows, and says so: somebody agrees to what stands here.
"""

from __future__ import annotations

from collections.abc import Sequence

from causeway.core.failback.divergence import FailbackPlan, FailbackRun, Step, TopicImpact, impacts
from causeway.core.failback.rebuild_impact import Reader, RebuildImpact
from causeway.core.kernel.estimate import total
from causeway.core.kernel.plurals import counted, some
from causeway.render.tables import cut_line, one_line, shortened, table

_MOST_ROWS, _READERS_AT_MOST = 25, 10


def plan_text(plan: FailbackPlan, *, accepts_loss: bool = False) -> str:
    """With the price."""
    told = _resume_lines(plan) if plan.rebuild is None else _rebuild_lines(plan, plan.rebuild, accepts_loss)
    lines = [
        f"{plan.flow}: failback by {plan.reverse}, {plan.way}; plan {plan.hash}",
        "",
        *told,
        *shortened([f"NOTE {note}" for note in plan.notes], where=f" notes{_where(plan)}"),
        "",
        *(_resume_table(plan) if plan.rebuild is None else _rebuild_table(plan, plan.rebuild)),
    ]
    return "\n".join(lines)


def rebuild_question(plan: FailbackPlan, price: RebuildImpact, new: str) -> str:
    """What somebody types the flow's name for: it stands below all tables, where it is read last."""
    topics = len({cut.old.topic for cut in plan.cuts})
    gone = f" (lost permanently: {price.gone})" if price.loses else ""
    return (
        f"delete all {price.deleted} records of {counted(topics, 'topic')} of {price.source}{gone}, "
        f"and mirror {new} into it"
    )


def _where(plan: FailbackPlan) -> str:
    return f": `causeway failback {plan.flow} --{plan.way} --dry-run --json` has them all"


def _resume_lines(plan: FailbackPlan) -> list[str]:
    return [
        f"{plan.flow}: {plan.written} records were written since the failover and go back; {plan.tail} were "
        "never mirrored: they stay where they are, and are copied to TOPIC.diverged.TIME on the new primary",
        *_who_may_read_exports(plan),
    ]


def _resume_table(plan: FailbackPlan) -> list[str]:
    headers = ("OLD PRIMARY", "NEW PRIMARY", "PARTITIONS", "DIVERGENT RECORDS", "BYTES", "TO COPY BACK", "")
    dearest = sorted(
        impacts(plan), key=lambda price: (not price.parted, price.tail.dearness, price.written.dearness)
    )
    rows = [
        (
            price.old,
            price.new,
            price.partitions,
            str(price.tail),
            str(price.tail_bytes),
            str(price.written),
            _fate(price),
        )
        for price in dearest
    ]
    return _cut_table(plan, headers, rows)


def _fate(price: TopicImpact) -> str | None:
    """Of what never crossed."""
    if price.tail.is_nothing:
        return None
    return "stays, and is exported" if price.parted else "is mirrored later: nothing else writes that mirror"


def _rebuild_lines(plan: FailbackPlan, price: RebuildImpact, accepts_loss: bool) -> list[str]:  # noqa: FBT001
    deleted = (
        f"{plan.flow}: {price.deleted} records of {price.source} are DELETED, and {price.anew} are copied "
        f"again; {plan.tail} were never mirrored, and are copied before to TOPIC.diverged.TIME on the new "
        "primary"
    )
    written_to = [f"STILL WRITTEN TO {topic}: stop its writers" for topic in price.written_to]
    at_work = sorted(price.readers, key=lambda reader: not reader.is_active)
    return [
        deleted,
        *_who_may_read_exports(plan),
        *_gone_lines(price, accepts_loss),
        *shortened(written_to, where=f" topics{_where(plan)}"),
        *shortened(list(map(_reader_line, at_work)), _READERS_AT_MOST, f" groups{_where(plan)}"),
    ]


def _who_may_read_exports(plan: FailbackPlan) -> list[str]:
    """No flow mirrors an export. Kafka doesn't tell what a consumer's pattern would match."""
    if plan.tail.is_nothing:
        return []
    groups = one_line(some(plan.at_work, _READERS_AT_MOST))
    return [
        "EXPORTS ARE NEW TOPICS: no flow mirrors them, but a consumer that subscribes to a pattern (.*, "
        "orders.*) reads them. "
        + (
            "CHECK the subscription in the configuration of the consumers of each of these groups, which "
            f"have members on the new primary: {groups}. If it is a pattern, stop them, or exclude "
            ".*[.]diverged[.][0-9]{8}T.*"
            if groups
            else "No group with members on the new primary is known to have read these topics. CHECK the "
            "subscription in the configuration of a consumer before you start it there"
        )
    ]


def _gone_lines(price: RebuildImpact, accepts_loss: bool) -> list[str]:  # noqa: FBT001
    if not price.loses:
        return []
    gone = price.gone
    why = f" ({one_line(gone.because)})" if gone.because else ""
    then = "--accept-loss deletes them" if accepts_loss else "refused without --accept-loss"
    return [
        f"GONE FOR GOOD {gone} records of {some(price.losing)}: neither on the new primary nor exported{why}"
        f"; {then}"
    ]


def _rebuild_table(plan: FailbackPlan, price: RebuildImpact) -> list[str]:
    headers = (
        f"ON {price.source}",
        "PARTITIONS",
        "DELETED",
        "BYTES",
        "EXPORTED BEFORE",
        "GONE FOR GOOD",
        "COPIED ANEW",
        "LAST WRITTEN",
        "GROUPS THERE",
    )
    return _cut_table(plan, headers, [_rebuild_row(price, topic) for topic in _dearest(plan, price)])


def _dearest(plan: FailbackPlan, price: RebuildImpact) -> list[TopicImpact]:
    """What is lost permanently first, then what is deleted."""

    def key(topic: TopicImpact) -> tuple[tuple[int, int], ...]:
        parts = price.of_topic(topic.old)
        return total(part.gone for part in parts).dearness, total(part.held for part in parts).dearness

    return sorted(impacts(plan), key=key)


def _rebuild_row(price: RebuildImpact, topic: TopicImpact) -> tuple[object, ...]:
    parts = price.of_topic(topic.old)
    return (
        topic.old,
        topic.partitions,
        str(total(part.held for part in parts)),
        str(total(part.held_bytes for part in parts)),
        str(topic.tail),
        str(total(part.gone for part in parts)),
        str(total(part.anew for part in parts)),
        price.last_written(topic.old),
        len(price.readers_of(topic.old)),
    )


def _cut_table(plan: FailbackPlan, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    shown = rows[:_MOST_ROWS]
    return [table(headers, shown), *cut_line(len(shown), len(rows), f" topics{_where(plan)}")]


def _reader_line(reader: Reader) -> str:
    what = "has members there: stop its consumers" if reader.is_active else "continues where --home puts it"
    return f"GROUP {reader.group} on {some(reader.topics)}: {what}"


def exports_left(run: FailbackRun) -> list[str]:
    """What a failback kept aside, for those who decide about it once all is home."""
    exports = run.facts.get("exports")
    if not isinstance(exports, dict) or not exports:
        return []
    held = ", ".join(f"{name} ({count:,})" for name, count in sorted(exports.items()))
    return [
        f"{run.flow}: divergent records still wait for their owners, in {one_line(held)}: they decide what "
        "becomes of them"
    ]


def run_text(run: FailbackRun, *, was_done: bool) -> str:
    head = f"{run.flow}: failback {run.run} {'was begun already' if was_done else 'has begun'}"
    exports = run.facts.get("exports")
    lines = [
        f"{run.flow}: {count:,} divergent records in {name}"
        for name, count in (exports.items() if isinstance(exports, dict) else ())
    ]
    if lines:
        lines.append(f"{run.flow}: exclude exports from pattern subscriptions: .*[.]diverged[.][0-9]{{8}}T.*")
    if run.step is Step.HOME:
        return f"{run.flow}: failback {run.run} is over: all is home"
    flow = run.reverse if run.facts.get("parted") else run.flow
    lines.append(
        f"{head}: run {flow} (`causeway run {flow} --until-caught-up`, or its DAG) until its lag is small, "
        f"stop writers, then `causeway failback {run.flow} --home`"
    )
    return "\n".join(lines)
