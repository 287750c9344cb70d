"""The verbs that work on a flow's clusters: plan, run, status, verify, fence, lift."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.errors import BadInput
from causeway.entrypoints.tables import table
from causeway.entrypoints.verbs import Outcome, Request, deployment_of, reason_given, run_for_seconds

if TYPE_CHECKING:
    from causeway.config.deployment import Deployment
    from causeway.core.endpoint import ClusterEndpoint
    from causeway.core.flow import Flow
    from causeway.core.gap_ledger import AcceptedGap
    from causeway.flows.look import FlowView

PARKED = 5


def plan(request: Request) -> Outcome:
    from causeway.flows.look import look_at_flow

    _, flow, source, target = opened(request)
    view = look_at_flow(flow, source, target)
    rows = [*_begin_rows(view), *_partition_rows(view)]
    waiting = sum(int(str(row["lag"])) for row in rows)
    created = [topic.name for topic in view.landscape.topics.to_create]
    payload = {
        "flow": flow.name,
        "lag": waiting,
        "topics_to_create": created,
        "topics_to_grow": [g.name for g in view.landscape.topics.to_grow],
        "refused_topics": _refused(view),
        "notes": list(view.landscape.topics.notes),
        "partitions": rows,
    }
    lines = [
        _table(rows, ("source", "target", "position", "end", "lag")),
        "",
        f"{flow.name}: {waiting:,} offsets to copy, {len(created)} topics to create; nothing was written",
        *_remarks(view),
    ]
    return Outcome(payload=payload, text="\n".join(lines))


def status(request: Request) -> Outcome:
    from causeway.core.instants import rfc3339
    from causeway.flows.look import look_at_flow

    _, flow, source, target = opened(request)
    view = look_at_flow(flow, source, target)
    rows = _partition_rows(view)
    run, fence = view.state.running, view.state.fence
    payload = {
        "flow": flow.name,
        "generation": view.state.generation,
        "held_by": None
        if run is None
        else {
            "holder": run.holder,
            "since": rfc3339(run.since_ms),
            "alive_at": rfc3339(view.state.last_sign_ms),
        },
        "fenced": None
        if fence is None
        else {"by": fence.by, "because": fence.because, "since": rfc3339(fence.since_ms)},
        "lag": view.plan.lag,
        "not_begun": len(view.to_begin),
        "partitions": rows,
        "parked": [
            {"source": str(tp), "why": str(why), **why.as_dict()} for tp, why in view.plan.parked.items()
        ],
        "accepted_gaps": [_accepted(entry) for entry in view.state.gaps.values()],
        "refused_topics": _refused(view),
    }
    begun = f"{len(rows)} partitions, lag {view.plan.lag:,}"
    lines = [
        _table(rows, ("source", "target", "position", "end", "lag", "mirrored", "repeats")),
        "",
        f"{flow.name}: {_whose_turn(view)}; {begun}; {len(view.to_begin)} partitions not begun",
        *_remarks(view),
        *(_accepted_line(entry) for entry in view.state.gaps.values()),
    ]
    is_red = view.plan.parked or view.landscape.topics.refused
    return Outcome(payload=payload, text="\n".join(lines), exit_code=PARKED if is_red else 0)


def _whose_turn(view: FlowView) -> str:
    from causeway.core.instants import rfc3339

    run, fence = view.state.running, view.state.fence
    if fence is not None:
        return f"fenced by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}"
    if run is None:
        return "nobody holds it"
    alive = rfc3339(view.state.last_sign_ms)
    return f"held by {run.holder} since {rfc3339(run.since_ms)}, last sign of life {alive}"


def run(request: Request) -> Outcome:
    if request.options.dry_run:
        return plan(request)
    from causeway.entrypoints.run_report import copied_again
    from causeway.flows.copy import RunOptions
    from causeway.flows.ownership import Holder
    from causeway.spark import driver

    options = request.options
    seconds = run_for_seconds(options.run_for)
    deployment, flow, source, target = opened(request)
    if seconds is None and not options.until_caught_up:
        seconds = deployment.schedules[flow.name].run_for_seconds
    holder = who()
    report = driver.run(
        deployment,
        flow.name,
        (source, target),
        RunOptions(
            holder=Holder(name=holder, run_id=f"{holder} {driver.new_run_id()}"),
            run_for_seconds=seconds,
            take_over=options.take_over,
        ),
        say=request.progress,
        report_path=None if options.report is None else Path(options.report),
    )
    lines = [driver.last_line(report)]
    lines += [
        copied_again(p.source, p.target, p.recopied_from)
        for p in report.partitions.values()
        if p.recopied_from is not None
    ]
    lines += [
        f"PARKED {p['source']}: {p['reason']}: {p['facts']}; {p['remedy']}" for p in _parked(report.as_dict())
    ]
    lines += [f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in report.refused_topics]
    exit_code = PARKED if report.leaves_something_out else 0
    return Outcome(payload=report.as_dict(), text="\n".join(lines), exit_code=exit_code)


def verify(request: Request) -> Outcome:
    from causeway.entrypoints.verdicts import verdict_text, verdicts
    from causeway.flows.verify_mirror import verify_mirror

    _, flow, source, target = opened(request)
    last: list[int] = [0]

    def tell(progress: object) -> None:
        from causeway.flows.verify import VerifyProgress

        assert isinstance(progress, VerifyProgress)
        if progress.partitions_done > last[0]:
            last[0] = progress.partitions_done
            request.progress(
                f"{flow.name}: {progress.partitions_done} of {progress.partitions_total} partitions, "
                f"{progress.records_equal:,} records equal"
            )

    report = verify_mirror(flow, source, target, on_progress=tell)
    return Outcome(
        payload=verdicts(flow.name, report), text=verdict_text(flow.name, report), exit_code=report.exit_code
    )


def fence(request: Request) -> Outcome:
    from causeway.flows.fence import fence_flow

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    done = fence_flow(flow, target, by=who(), because=because)
    text = (
        f"{flow.name}: {'fenced' if done.changed else 'was fenced already'} (generation {done.generation}); "
        f"{done.lanes_claimed} lanes claimed: nothing can be added until "
        f'`causeway lift {flow.name} --because "..."`'
    )
    return Outcome(payload=_as_dict(done), text=text)


def lift(request: Request) -> Outcome:
    from causeway.flows.fence import lift_fence

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    done = lift_fence(flow, target, by=who(), because=because)
    state = "lifted" if done.changed else "no fence stood"
    return Outcome(payload=_as_dict(done), text=f"{flow.name}: {state} (generation {done.generation})")


def opened(request: Request) -> tuple[Deployment, Flow, ClusterEndpoint, ClusterEndpoint]:
    """The flow and its two clusters' endpoints; nothing has been connected yet."""
    from causeway.entrypoints.project import cluster_endpoint

    deployment = deployment_of(request)
    flow = deployment.flow(request.options.flow)
    source, target = (
        cluster_endpoint(deployment, alias, request.environ, request.directory, request.say)
        for alias in (flow.source, flow.target)
    )
    return deployment, flow, source, target


def who() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


def number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise BadInput(
            name, value=text[:40], rule="must be a whole number, 0 or more", remedy="write it in digits"
        )
    return int(text)


def _partition_rows(view: FlowView) -> list[dict[str, object]]:
    from causeway.core.position import Position

    rows: list[dict[str, object]] = []
    for facts in view.plan.partitions:
        position = facts.position if isinstance(facts.position, Position) else None
        rows.append(
            {
                "source": str(facts.pair.source),
                "target": str(facts.pair.target),
                "position": position.source_next if position else None,
                "end": facts.last_stable,
                "lag": facts.lag,
                "mirrored": position.records if position else 0,
                "repeats": position.aborted_records if position else 0,
            }
        )
    return rows


def _begin_rows(view: FlowView) -> list[dict[str, object]]:
    return [
        {
            "source": str(new.source),
            "target": str(new.target),
            "position": None,
            "end": new.last_stable,
            "lag": new.lag,
        }
        for new in view.to_begin
    ]


def _table(rows: Iterable[dict[str, object]], columns: tuple[str, ...]) -> str:
    return table(tuple(c.upper() for c in columns), [tuple(row[c] for c in columns) for row in rows])


def _refused(view: FlowView) -> list[dict[str, str]]:
    return [{"topic": r.topic, "reason": r.reason, "remedy": r.remedy} for r in view.landscape.topics.refused]


def _remarks(view: FlowView) -> list[str]:
    return [
        *view.landscape.topics.notes,
        *(f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in _refused(view)),
        *(f"PARKED {tp}: {why}" for tp, why in view.plan.parked.items()),
        *(f"WAITS {tp}: {why}" for tp, why in view.plan.later.items()),
    ]


def _accepted(entry: AcceptedGap) -> dict[str, object]:
    from causeway.core.instants import rfc3339

    return {**entry.as_dict(), "offsets": entry.gap.end - entry.gap.first, "at": rfc3339(entry.at_ms)}


def _accepted_line(entry: AcceptedGap) -> str:
    from causeway.core.instants import rfc3339

    gap = entry.gap
    return (
        f"ACCEPTED {gap.source}: offsets {gap.first} to {gap.end - 1}, {gap.kind}; by {entry.by} at "
        f"{rfc3339(entry.at_ms)}: {entry.because}"
    )


def _parked(report: dict[str, object]) -> list[dict[str, str]]:
    found = report["parked"]
    assert isinstance(found, list)
    return found


def _as_dict(value: object) -> dict[str, object]:
    from dataclasses import asdict, is_dataclass

    assert is_dataclass(value)
    assert not isinstance(value, type)
    return asdict(value)
