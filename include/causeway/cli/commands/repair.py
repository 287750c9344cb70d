"""The verbs by which an operator continues after a loss: accept-gap, restart-topic, reconcile, and adopt.

Each of them can be typed again, and with `--dry-run` shows what it would do and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, number, opened, partition_number, reason_given, who
from causeway.core.kernel.errors import BadInput
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.core.kernel.identity import TopicPartition
    from causeway.usecases.repair.adopt import Adopted
    from causeway.usecases.repair.reconcile import Reconciled
    from causeway.usecases.repair.set_positions import Reason

_DRY_RUN = "show what would be done; write nothing"
_BECAUSE = "the reason; Causeway keeps it and shows it"


def add_gap_verbs(add: Any) -> None:
    adopting = add("adopt", adopt, "set by hand where a parked partition continues")
    _add_place(adopting)
    adopting.add_argument("offset", metavar="OFFSET", help="the source offset of the first record to copy")
    adopting.add_argument(
        "--even-though-healthy",
        action="store_true",
        help="also where nothing is wrong: records are copied twice, or left out",
    )
    accepting = add("accept-gap", accept_gap, "continue after records that the source has lost")
    _add_place(accepting)
    accepting.add_argument(
        "first", metavar="FROM", help="the first source offset of the gap, as Causeway reported it"
    )
    accepting.add_argument(
        "end", metavar="TO", help="the offset after the gap's last one, as Causeway reported it"
    )
    restarting = add("restart-topic", restart_topic, "begin again with a topic that was deleted or recreated")
    restarting.add_argument("topic", metavar="TOPIC", help="the source topic")
    reconciling = add(
        "reconcile", reconcile, "find where a partition stands by comparing records, and continue there"
    )
    reconciling.add_argument("topic", metavar="TOPIC", help="the source topic")
    reconciling.add_argument("partition", metavar="PARTITION", nargs="?", help="its partition (default: all)")
    for each in (adopting, accepting, restarting, reconciling):
        each.add_argument("--because", metavar="TEXT", required=True, help=_BECAUSE)
        each.add_argument("--dry-run", action="store_true", help=_DRY_RUN)


def _add_place(parser: Any) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the source topic")
    parser.add_argument("partition", metavar="PARTITION", help="its partition")


def adopt(request: Request) -> Outcome:
    from causeway.usecases.repair.adopt import adopt_partition

    options = request.options
    at, offset, reason = _partition_named(request), number("OFFSET", options.offset), _reason(request)
    _, flow, source, target = opened(request)
    done = adopt_partition(
        flow,
        source,
        target,
        at,
        offset,
        reason,
        dry_run=options.dry_run,
        even_though_healthy=options.even_though_healthy,
    )
    return Outcome(payload=_adopted(done), text=f"{flow.name}: {_going_on(done, dry_run=options.dry_run)}")


def accept_gap(request: Request) -> Outcome:
    from causeway.core.kernel.timestamps import rfc3339
    from causeway.usecases.repair.accept_gap import accept_gap as accept

    options = request.options
    first, end = number("FROM", options.first), number("TO", options.end)
    at, reason = _partition_named(request), _reason(request)
    _, flow, source, target = opened(request)
    done = accept(flow, source, target, at, first, end, reason, dry_run=options.dry_run)
    entry, gap = done.entry, done.entry.gap
    payload = {**entry.as_dict(), "changed": done.adopted is not None and not options.dry_run}
    if done.adopted is None:
        since = rfc3339(entry.at_ms)
        text = (
            f"{flow.name}: offsets {gap.first} to {gap.end - 1} of {at} were accepted by {entry.by} "
            f"at {since}; nothing to do"
        )
        return Outcome(payload=payload, text=text)
    payload |= _adopted(done.adopted)
    would = "would accept" if options.dry_run else "accepted"
    going_on = _going_on(done.adopted, dry_run=options.dry_run)
    text = f"{flow.name}: {would} offsets {gap.first} to {gap.end - 1} of {at} ({gap.kind}); {going_on}"
    return Outcome(payload=payload, text=text)


def restart_topic(request: Request) -> Outcome:
    from causeway.usecases.repair.restart_topic import restart_topic as restart

    options = request.options
    topic, reason = _topic(request), _reason(request)
    _, flow, source, target = opened(request)
    done = restart(flow, source, target, topic, reason, dry_run=options.dry_run)
    lines = []
    would = "would be " if options.dry_run else ""
    match done.how:
        case "nothing to do":
            lines.append(
                f"{flow.name}: {done.source_topic} and {done.target_topic} are the topics that the flow "
                "works with; nothing to do"
            )
        case "forgotten":
            lines.append(
                f"{flow.name}: {done.source_topic} to {done.target_topic} {would}forgotten; a run begins it "
                "again when there is something to begin with"
            )
        case "begun anew":
            lines += [
                f"{flow.name}: {done.source_topic}-{partition} {would}begun again at source offset {here}"
                + (f", appended from offset {there} on" if there >= 0 else "")
                for partition, here, there in done.beginnings
            ]
    payload = {
        "flow": flow.name,
        "source_topic": done.source_topic,
        "target_topic": done.target_topic,
        "how": done.how,
        "generation": done.generation,
        "partitions": [
            {"partition": partition, "source_offset": here, "target_offset": there}
            for partition, here, there in done.beginnings
        ],
    }
    return Outcome(payload=payload, text="\n".join(lines))


def reconcile(request: Request) -> Outcome:
    from causeway.core.kernel.identity import TopicPartition
    from causeway.usecases.repair.reconcile import partitions_of, reconcile_partition

    options = request.options
    topic, reason = _topic(request), _reason(request)
    given = None if options.partition is None else partition_number(options.partition)
    _, flow, source, target = opened(request)
    partitions = [given] if given is not None else partitions_of(flow, source, target, topic)
    lines, found = [], []
    for partition in partitions:
        at = TopicPartition(topic, partition)
        done = reconcile_partition(flow, source, target, at, reason, dry_run=options.dry_run)
        lines.append(f"{flow.name}: {_reconciled(at, done, dry_run=options.dry_run)}")
        found.append(_reconciled_dict(at, done))
    return Outcome(payload={"flow": flow.name, "partitions": found}, text="\n".join(lines))


def _reconciled(at: TopicPartition, done: Reconciled, *, dry_run: bool) -> str:
    if done.adopted is None:
        return f"{at} is where its position says; nothing to do"
    found = done.found
    after = f"; after it {found.found:,} records are the source's, {found.foreign:,} aren't and stay"
    seen = after if found.found or found.foreign else ""
    return f"{_going_on(done.adopted, dry_run=dry_run)} (found by {found.told_by}{seen})"


def _reconciled_dict(at: TopicPartition, done: Reconciled) -> dict[str, object]:
    payload: dict[str, object] = {
        "source": str(at),
        "told_by": done.found.told_by,
        "records_found": done.found.found,
        "records_foreign": done.found.foreign,
        "changed": done.adopted is not None,
    }
    return payload if done.adopted is None else payload | _adopted(done.adopted)


def _going_on(done: Adopted, *, dry_run: bool) -> str:
    goes = "would go on" if dry_run else "goes on"
    return (
        f"{done.source} {goes} at source offset {done.source_offset}, "
        f"appended from {done.target} offset {done.target_offset} on{_price(done, dry_run=dry_run)}"
    )


def _price(done: Adopted, *, dry_run: bool) -> str:
    """A partition that stands rightly has no need of being adopted: what that does to readers is printed."""
    from causeway.usecases.repair.adopt import in_words

    if done.stood_at is None or done.stood_at == done.source_offset:
        return ""
    needs = "; NOTHING IS WRONG WITH IT: leave it alone" if dry_run and done.is_healthy else ""
    return f"; it stood at {done.stood_at}: {in_words(done.stood_at, done.source_offset)}{needs}"


def _adopted(done: Adopted) -> dict[str, object]:
    return {
        "source": str(done.source),
        "target": str(done.target),
        "source_offset": done.source_offset,
        "target_offset": done.target_offset,
        "generation": done.generation,
        "stood_at": done.stood_at,
        "is_healthy": done.is_healthy,
    }


def _partition_named(request: Request) -> TopicPartition:
    from causeway.core.kernel.identity import TopicPartition

    return TopicPartition(_topic(request), partition_number(request.options.partition))


def _topic(request: Request) -> str:
    """:raises BadInput: no topic can be called that."""
    from causeway.core.model.naming import is_legal

    name: str = request.options.topic
    if not is_legal(name):
        raise BadInput(
            "TOPIC",
            value=name[:300],
            rule="is no legal name of a topic: 1 to 249 ASCII letters, digits, '.', '_' and '-'",
            remedy=f"see the names of its topics: causeway plan {request.options.flow}",
        )
    return name


def _reason(request: Request) -> Reason:
    from causeway.usecases.repair.set_positions import Reason

    return Reason(by=who(), because=reason_given(request.options.because))
