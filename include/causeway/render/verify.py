"""What a comparison found, for people and for machines: also what could not be compared."""

from __future__ import annotations

from causeway.core.kernel.plurals import counted
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.state.position_ledger import ManualPosition
from causeway.core.verify.report import PartitionVerdict, VerifyReport
from causeway.render.tables import table

_HEADERS = ("SOURCE", "TARGET", "EQUAL", "DIFFERENT", "MISSING", "EXTRA", "GONE", "BEHIND")


def verdicts(flow: str, report: VerifyReport) -> dict[str, object]:
    return {
        "flow": flow,
        "equal": report.exit_code == 0,
        "records_equal": report.records_equal,
        "records_gone": sum(map(_gone, report.partitions)),
        "offsets_behind": sum(v.behind for v in report.partitions),
        "parked": {str(tp): why for tp, why in sorted(report.parked.items())},
        "not_begun": report.not_begun,
        "notes": list(report.notes),
        "rests": report.rests,
        "never_crossed": sum(v.never_crossed for v in report.partitions),
        "partitions": [
            {
                "source": str(v.source),
                "target": str(v.target),
                "equal": v.equal,
                "different": v.different,
                "missing": v.missing,
                "extra": v.extra,
                "gone_on_source": v.gone_on_source,
                "gone_on_target": v.gone_on_target,
                "cleaned_on_source": v.cleaned_on_source,
                "cleaned_on_target": v.cleaned_on_target,
                "never_crossed": v.never_crossed,
                "compared": "by the offset map" if v.is_by_map else "in order",
                "quarantined": v.quarantined,
                "behind": v.behind,
                "not_compared": v.not_compared,
                "set_by_hand": None if v.set_by_hand is None else v.set_by_hand.as_dict(),
                "trouble": v.trouble,
                "differences": [str(d) for d in v.differences],
            }
            for v in report.partitions
        ],
    }


def verdict_text(flow: str, report: VerifyReport, *, forward: str = "") -> str:
    """`forward`: the flow whose reverse flow this is, if it is one: that one's `verify --all` proves both."""
    rows = [
        (str(v.source), str(v.target), v.equal, v.different, v.missing, v.extra, _gone(v), v.behind)
        for v in report.partitions
    ]
    lines = [table(_HEADERS, rows), ""]
    lines += [f"{v.source}: {v.trouble or v.differences[0]}" for v in report.unequal]
    lines += [
        _begun_text(forward or flow, v, v.set_by_hand) for v in report.partitions if v.set_by_hand is not None
    ]
    lines += [f"{flow}: {line}" for line in _besides(report)]
    gone, behind = sum(map(_gone, report.partitions)), sum(v.behind for v in report.partitions)
    if gone:
        lines.append(f"{flow}: {counted(gone, 'record')} can't be compared, retention took them on one side")
    if aside := sum(v.quarantined for v in report.partitions):
        lines.append(f"{flow}: {counted(aside, 'record')} in quarantine, and not in the mirror")
    if behind:
        lines.append(f"{flow}: {counted(behind, 'source offset')} after the last mirrored record not judged")
    lines += [f"NOT COMPARED {tp}: parked: {why}" for tp, why in sorted(report.parked.items())]
    lines += [f"{flow}: {note}" for note in report.notes]
    if report.not_begun:
        lines.append(f"{flow}: {counted(report.not_begun, 'partition')} not begun, nothing to compare there")
    if report.rests:
        lines.append(
            f"{flow}: RESTS: {report.rests}; only what it had mirrored by then is compared, not what others "
            "wrote since"
        )
    equal = f"{counted(report.records_equal, 'record')} compared equal, {_how(report)}"
    lines.append(f"{flow}: {_verdict(report)}; {equal}")
    return "\n".join(lines)


def _how(report: VerifyReport) -> str:
    by_map = sum(v.equal for v in report.partitions if v.is_by_map)
    if not by_map:
        return "in order"
    pairs = "in pairs that the offset map names, in order"
    return pairs if by_map == report.records_equal else f"in order; {by_map:,} of them {pairs}"


def _besides(report: VerifyReport) -> list[str]:
    """What may be on one side only, and why."""
    here = sum(v.cleaned_on_source for v in report.partitions)
    there = sum(v.cleaned_on_target for v in report.partitions)
    lines = []
    if here or there:
        lines.append(
            f"compaction took {here:,} mirrored records on the source, and {there:,} on the target: "
            "a later record of the key follows, or the key is deleted on both sides"
        )
    if tail := sum(v.never_crossed for v in report.partitions):
        lines.append(
            f"{counted(tail, 'record')} only on the source: they were never mirrored, and a failback "
            "exported them (TOPIC.diverged.TIME)"
        )
    return lines


def _verdict(report: VerifyReport) -> str:
    """In one word, if there is one."""
    if report.unequal:
        differ = "partition differs" if len(report.unequal) == 1 else "partitions differ"
        return f"{len(report.unequal):,} {differ}"
    if not report.partitions:
        return "NOTHING WAS COMPARED"
    if not report.records_equal and any(map(_gone, report.partitions)):
        return "nothing left that can be compared"
    return f"equal but for {counted(len(report.parked), 'parked partition')}" if report.parked else "equal"


def _begun_text(whole: str, verdict: PartitionVerdict, entry: ManualPosition) -> str:
    place = next(place for place in entry.places if place.partition == verdict.target.partition)
    return (
        f"{verdict.source}: compared from source offset {place.source_next} and target offset "
        f"{place.target_next} on, where {entry.how} set it ({entry.by} at {rfc3339(entry.at_ms)}: "
        f"{entry.because}); {verdict.not_compared:,} target offsets before that aren't compared"
        + (f": `causeway verify {whole} --all` compares them, too" if entry.is_of_failback else "")
    )


def _gone(verdict: PartitionVerdict) -> int:
    return verdict.gone_on_source + verdict.gone_on_target
