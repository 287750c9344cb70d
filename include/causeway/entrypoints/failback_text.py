"""A failback's plan and what became of it, as text for a terminal, a task's log and an approval."""

from __future__ import annotations

from causeway.core.failback.plan import FailbackPlan, FailbackRun, Step, TopicPrice, prices
from causeway.core.failback.rebuild import Reader, RebuildPrice
from causeway.core.failover.figure import Figure, total
from causeway.entrypoints.tables import one_line, table

_READERS_AT_MOST = 10


def plan_text(plan: FailbackPlan) -> str:
    """With the price; of a rebuild first what it deletes."""
    told = _resume_lines(plan) if plan.rebuild is None else _rebuild_lines(plan, plan.rebuild)
    lines = [
        f"{plan.flow}: failback by {plan.reverse}, {plan.way}; plan {plan.hash}",
        "",
        *told,
        *(f"NOTE {one_line(note)}" for note in plan.notes),
    ]
    return "\n".join(lines)


def _resume_lines(plan: FailbackPlan) -> list[str]:
    headers = ("OLD PRIMARY", "NEW PRIMARY", "PARTITIONS", "DIVERGENT RECORDS", "BYTES", "TO COPY BACK", "")
    rows = [
        (
            price.old,
            price.new,
            price.partitions,
            str(price.tail),
            str(price.tail_bytes),
            str(price.written),
            "stays, and is exported" if price.parted else "crosses later: nothing else writes that mirror",
        )
        for price in prices(plan)
    ]
    return [
        table(headers, rows),
        "",
        f"{plan.flow}: {plan.written} records were written since the failover and go back; {plan.tail} never "
        "crossed: they stay where they are, and are copied to TOPIC.diverged.TIME on the new primary",
    ]


def _rebuild_lines(plan: FailbackPlan, price: RebuildPrice) -> list[str]:
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
    rows = [_rebuild_row(price, topic) for topic in prices(plan)]
    deleted, anew = (
        total(figures) for figures in ([p.held for p in price.partitions], [p.anew for p in price.partitions])
    )
    return [
        table(headers, rows),
        "",
        f"{plan.flow}: {deleted} records of {price.source} are DELETED, and {anew} are copied anew; "
        f"{plan.tail} never crossed, and are copied to TOPIC.diverged.TIME on the new primary before",
        *_gone_lines(price.gone),
        *(_reader_line(reader) for reader in price.readers[:_READERS_AT_MOST]),
        *_more_readers(price),
        *(f"STILL WRITTEN TO {one_line(topic)}: stop its writers" for topic in price.written_to),
    ]


def _rebuild_row(price: RebuildPrice, topic: TopicPrice) -> tuple[object, ...]:
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


def _gone_lines(gone: Figure) -> list[str]:
    if gone.number == 0:
        return []
    why = f" ({gone.because})" if gone.because else ""
    return [
        f"GONE FOR GOOD {gone} records of the old primary are neither on the new one nor exported{why}: "
        "refused without --accept-loss"
    ]


def _reader_line(reader: Reader) -> str:
    where = one_line(", ".join(reader.topics))
    what = (
        "has members there: stop its consumers" if reader.is_active else "goes on there where --home puts it"
    )
    return f"GROUP {one_line(reader.group)} on {where}: {what}"


def _more_readers(price: RebuildPrice) -> list[str]:
    more = len(price.readers) - _READERS_AT_MOST
    return [f"GROUP ... and {more:,} more"] if more > 0 else []


def run_text(run: FailbackRun, *, was_done: bool) -> str:
    head = f"{run.flow}: failback {run.run} {'was begun already' if was_done else 'has begun'}"
    exports = run.facts.get("exports")
    lines = [
        f"{run.flow}: {count:,} divergent records in {name}"
        for name, count in (exports.items() if isinstance(exports, dict) else ())
    ]
    if run.step is Step.HOME:
        return f"{run.flow}: failback {run.run} is over: all is home"
    flow = run.reverse if run.facts.get("parted") else run.flow
    lines.append(
        f"{head}: run {flow} (`causeway run {flow}`, or its DAG) until its lag is small, stop writers, then "
        f"`causeway failback {run.flow} --home`"
    )
    return "\n".join(lines)
