"""The verbs of the offset map: translate offsets through it, keep it small."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TextIO

from causeway.cli.request import LARGEST_OFFSET, LARGEST_PARTITION, Request, opened
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.plurals import counted
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.core.kernel.identity import TopicPartition
    from causeway.core.offsets.mm2_offset_syncs import LowerBound
    from causeway.core.offsets.translation import FlowMap
    from causeway.core.offsets.why_not import WhyNot

UNTRANSLATED = 1


def add_map_verbs(add: Any) -> None:
    translating = add("translate", translate, "translate an offset of the source into one of the target")
    translating.add_argument(
        "places",
        metavar="TOPIC:PARTITION:OFFSET",
        nargs="*",
        help="the next offset to read (default: one in each line of standard input)",
    )
    translating.add_argument(
        "--reverse", action="store_true", help="translate target offsets back to the source"
    )
    add("maintain", maintain, "merge old entries of the offset map; safe beside a run")


def translate(request: Request) -> Outcome:
    from causeway.usecases.offsets.translate import load_flow_map
    from causeway.usecases.session.flows_topic_health import say_of_own_topics

    places = [("TOPIC:PARTITION:OFFSET", text) for text in request.options.places] or _piped_lines()
    given = [text for _, text in places]
    asked = [_parse_place(where, text) for where, text in places]
    _, flow, _, target = opened(request)
    found = load_flow_map(
        flow, target, look_at_log=lambda at, state: say_of_own_topics(flow, at, state, request.progress)
    )
    answers = [_answer(found, *place, is_reverse=request.options.reverse) for place in asked]
    rows = [
        {"from": text, "to": answer.text if isinstance(answer, _There) else None, **_why_fields(answer)}
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
    from causeway.usecases.offsets.maintain_map import maintain_map

    _, flow, _, target = opened(request)
    report = maintain_map(flow, target, request.progress)
    lines = [
        f"{flow.name}: {report.entries_before:,} entries of {report.bytes_before:,} bytes became "
        f"{report.entries_after:,} of {report.bytes_after:,}, for {counted(report.partitions, 'partition')}, "
        f"in {counted(report.transactions, 'transaction')}",
        *(f"PUT OFF {tp}: a lane wrote there meanwhile" for tp in report.put_off),
    ]
    return Outcome(payload=asdict(report), text="\n".join(lines))


def _piped_lines() -> list[tuple[str, str]]:
    """Each place that is piped in, after the name of its line.

    :raises BadInput: there is none, or it can't be read.
    """
    lines = [] if sys.stdin is None or sys.stdin.isatty() else _read_lines(sys.stdin)
    places = [(f"line {number} of standard input", line.strip()) for number, line in enumerate(lines, 1)]
    places = [(where, text) for where, text in places if text]
    if not places:
        rule, remedy = "there is none", "write orders:0:123, or pipe a list in"
        raise BadInput("TOPIC:PARTITION:OFFSET", rule=rule, remedy=remedy)
    return places


def _read_lines(stream: TextIO) -> list[str]:
    """Without the mark that some programs write before the first line."""
    remedy = "pipe a list in: one orders:0:123 in each line, in UTF-8"
    try:
        read = stream.buffer.read() if hasattr(stream, "buffer") else stream.read().encode()
        return read.decode("utf-8-sig").splitlines()
    except OSError as reason:
        rule = f"can't be read: {reason.strerror or reason}"
        raise BadInput("standard input", rule=rule, remedy=remedy) from None
    except UnicodeDecodeError as reason:
        number = read.count(b"\n", 0, reason.start) + 1
        rule = "has bytes that aren't UTF-8"
        raise BadInput(f"line {number} of standard input", rule=rule, remedy=remedy) from None


def _parse_place(where: str, text: str) -> tuple[TopicPartition, int]:
    from causeway.core.kernel.identity import TopicPartition
    from causeway.core.model.naming import is_legal

    topic, _, rest = text.partition(":")
    numbers = rest.split(":")
    is_place = is_legal(topic) and len(numbers) == 2
    if not is_place or not _is_number(numbers[0], LARGEST_PARTITION) or not _is_number(numbers[1]):
        rule = "isn't TOPIC:PARTITION:OFFSET" if where.startswith("line") else "isn't one"
        raise BadInput(where, value=text[:300], rule=rule, remedy="write orders:0:123")
    return TopicPartition(topic, int(numbers[0])), int(numbers[1])


def _is_number(text: str, most: int = LARGEST_OFFSET) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= most


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
    from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
    from causeway.core.offsets.mm2_offset_syncs import LowerBound

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


def _why_fields(answer: _There | WhyNot) -> dict[str, object]:
    bound = answer.bound if isinstance(answer, _There) else None
    if isinstance(answer, _There):
        return {
            "reason": None,
            "why": None if bound is None else bound.why,
            "is_lower_bound": bound is not None,
        }
    return {"reason": answer.reason, "why": str(answer), "is_lower_bound": False}
