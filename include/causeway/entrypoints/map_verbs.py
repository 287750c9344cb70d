"""The verbs of the offset map: translate offsets through it, keep it small."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from causeway.core.counting import counted
from causeway.core.errors import BadInput
from causeway.entrypoints.flow_verbs import opened
from causeway.entrypoints.verbs import Outcome, Request

if TYPE_CHECKING:
    from causeway.core.identity import TopicPartition
    from causeway.core.inherited import LowerBound
    from causeway.core.translation import FlowMap, WhyNot

UNTRANSLATED = 1
_LARGEST = (1 << 63) - 1


def add_map_verbs(add: Any) -> None:
    translating = add("translate", translate, "where a consumer of the source goes on, on the target")
    translating.add_argument(
        "places",
        metavar="TOPIC:PARTITION:OFFSET",
        nargs="*",
        help="the next offset to read; none: one in each line of standard input",
    )
    translating.add_argument(
        "--reverse", action="store_true", help="from target topics and offsets back to the source"
    )
    add("maintain", maintain, "merge what is old in the offset map; safe beside a run")


def translate(request: Request) -> Outcome:
    from causeway.flows.translation import load_flow_map

    given = request.options.places or _lines()
    asked = [_place(text) for text in given]
    _, flow, _, target = opened(request)
    found = load_flow_map(flow, target)
    answers = [_answer(found, *place, is_reverse=request.options.reverse) for place in asked]
    rows = [
        {"from": text, "to": answer.text if isinstance(answer, _There) else None, **_why(answer)}
        for text, answer in zip(given, answers, strict=True)
    ]
    lines = [_line(row) for row in rows]
    has_all = all(row["to"] for row in rows)
    return Outcome(
        payload={"flow": flow.name, "is_reverse": request.options.reverse, "translations": rows},
        text="\n".join(lines),
        exit_code=0 if has_all else UNTRANSLATED,
    )


def maintain(request: Request) -> Outcome:
    from causeway.flows.map_maintenance import maintain_map

    _, flow, _, target = opened(request)
    report = maintain_map(flow, target, request.progress)
    lines = [
        f"{flow.name}: {report.entries_before:,} entries of {report.bytes_before:,} bytes became "
        f"{report.entries_after:,} of {report.bytes_after:,}, for {counted(report.partitions, 'partition')}, "
        f"in {counted(report.transactions, 'transaction')}",
        *(f"PUT OFF {tp}: a lane wrote there meanwhile" for tp in report.put_off),
    ]
    return Outcome(payload=asdict(report), text="\n".join(lines))


def _lines() -> list[str]:
    if sys.stdin.isatty():
        raise BadInput(
            "TOPIC:PARTITION:OFFSET",
            rule="there is none",
            remedy="write orders:0:123, or pipe a list in",
        )
    return [line.strip() for line in sys.stdin if line.strip()]


def _place(text: str) -> tuple[TopicPartition, int]:
    from causeway.core.identity import TopicPartition

    topic, _, rest = text.partition(":")
    numbers = rest.split(":")
    if not topic or len(numbers) != 2 or not all(_is_number(number) for number in numbers):
        raise BadInput(
            "TOPIC:PARTITION:OFFSET", value=text[:300], rule="isn't one", remedy="write orders:0:123"
        )
    return TopicPartition(topic, int(numbers[0])), int(numbers[1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _LARGEST


@dataclass(frozen=True, slots=True)
class _There:
    text: str
    bound: LowerBound | None = None


def _line(row: Mapping[str, object]) -> str:
    if not row["to"]:
        return f"{row['from']}: {row['why']}"
    bound = f" ({row['why']})" if row["is_lower_bound"] else ""
    return f"{row['from']} -> {row['to']}{bound}"


def _answer(found: FlowMap, place: TopicPartition, offset: int, *, is_reverse: bool) -> _There | WhyNot:
    from causeway.core.identity import SourceOffset, TargetOffset, TopicPartition
    from causeway.core.inherited import LowerBound

    there = found.source_of(place) if is_reverse else found.target_of(place)
    if not isinstance(there, TopicPartition):
        return there
    answer = (
        found.to_source(place, TargetOffset(offset))
        if is_reverse
        else found.to_target(place, SourceOffset(offset))
    )
    if isinstance(answer, LowerBound):
        return _There(f"{there.topic}:{there.partition}:{answer.at}", answer)
    return _There(f"{there.topic}:{there.partition}:{answer}") if isinstance(answer, int) else answer


def _why(answer: _There | WhyNot) -> dict[str, object]:
    bound = answer.bound if isinstance(answer, _There) else None
    if isinstance(answer, _There):
        return {
            "reason": None,
            "why": None if bound is None else bound.why,
            "is_lower_bound": bound is not None,
        }
    return {"reason": answer.reason, "why": str(answer), "is_lower_bound": False}
