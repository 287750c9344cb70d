"""A failback's plan and what became of it, as text for a terminal, a task's log and an approval."""

from __future__ import annotations

from causeway.core.failback.plan import FailbackPlan, FailbackRun, Step, prices
from causeway.entrypoints.tables import one_line, table


def plan_text(plan: FailbackPlan) -> str:
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
    lines = [
        f"{plan.flow}: failback by {plan.reverse}, {plan.way}; plan {plan.hash}",
        "",
        table(headers, rows),
        "",
        f"{plan.flow}: {plan.written} records were written since the failover and go back; {plan.tail} never "
        "crossed: they stay where they are, and are copied to TOPIC.diverged.TIME on the new primary",
        *(f"NOTE {one_line(note)}" for note in plan.notes),
    ]
    return "\n".join(lines)


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
