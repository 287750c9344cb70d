"""What somebody asks of a failover, in words or in a form: read strictly, refused with the fix."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pendulum.tz.local_timezone import get_local_timezone

from causeway.config.values.moments import parse_moment_ms
from causeway.config.values.refusal import Refusal
from causeway.config.values.units import parse_duration_seconds
from causeway.core.failover.request import Active, FailoverRequest, Mode
from causeway.core.kernel.errors import BadInput
from causeway.core.model.pattern import compiled
from causeway.core.model.pattern_syntax import PatternError

_LONGEST_STILL_SECONDS = 3_600
LATEST, PLANNED = "latest", "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest:
    """A request for a failover as somebody wrote it, and nobody has read it yet."""

    flow: str
    at: str
    """A moment, `latest`, or `planned`."""
    safety: str | None = None
    groups: Sequence[str] = ()
    topics: Sequence[str] = ()
    active: str = Active.REFUSE
    clamp: bool = False


def read_request(written: WrittenRequest, *, named: Callable[[str], str] = "--{}".format) -> FailoverRequest:
    """`named`: what an option is called where it was written.

    :raises BadInput: names the option, what it holds, the rule and the fix.
    """
    at, safety = written.at, written.safety
    at_ms = None if at in (LATEST, PLANNED) else _moment_ms(at, named("at"))
    if at_ms is None and safety is not None:
        raise BadInput(
            named("safety"),
            value=safety,
            rule="steps back from a moment, and latest is each group's own place",
            remedy=f"leave it out, or write {named('at')} TIME",
        )
    safety_ms = _safety_ms(safety, named("safety"))
    if at_ms is not None and safety_ms > at_ms:
        rule = "steps back before 1970, where Kafka's time begins"
        raise BadInput(named("safety"), value=safety, rule=rule, remedy="write 30s")
    for option, patterns in (("groups", written.groups), ("topics", written.topics)):
        _check_patterns(named(option), patterns)
    return FailoverRequest(
        flow=written.flow,
        at_ms=at_ms,
        safety_ms=safety_ms,
        groups=tuple(written.groups),
        topics=tuple(written.topics),
        active=Active(written.active),
        clamp=written.clamp,
        mode=Mode.PLANNED if at == PLANNED else Mode.UNPLANNED,
    )


def _moment_ms(text: str, option: str) -> int:
    try:
        return parse_moment_ms(
            text, now_ms=time.time_ns() // 1_000_000, local_zone=get_local_timezone().name or "UTC"
        )
    except Refusal as refusal:
        raise BadInput(option, value=text[:80], rule=refusal.rule, remedy=refusal.remedy) from None


def _safety_ms(text: str | None, option: str) -> int:
    return 0 if text is None else round(seconds_given(option, text) * 1000)


def seconds_given(option: str, text: str) -> float:
    """:raises BadInput: no duration."""
    try:
        return parse_duration_seconds(text)
    except Refusal as refusal:
        raise BadInput(option, value=text[:40], rule=refusal.rule, remedy=refusal.remedy) from None


def still_seconds_given(text: str) -> float:
    """:raises BadInput: no duration, or one in which no writer could be seen."""
    seconds = seconds_given("--still", text)
    if not 1 <= seconds <= _LONGEST_STILL_SECONDS:
        rule = "must be 1s to 1h: for so long the source is watched, and nobody may write to it"
        raise BadInput("--still", value=text[:40], rule=rule, remedy="write 10s")
    return seconds


def _is_text(text: str) -> bool:
    """Python keeps bytes of an argument that aren't UTF-8 as halves of surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _check_patterns(option: str, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        if not _is_text(pattern):
            rule = "has bytes that aren't UTF-8, and no name in Kafka has"
            raise BadInput(option, value=pattern[:80], rule=rule, remedy="write the name as Kafka shows it")
        try:
            compiled(pattern)
        except PatternError as reason:
            raise BadInput(option, value=pattern[:80], rule=reason.rule, remedy=reason.remedy) from None
