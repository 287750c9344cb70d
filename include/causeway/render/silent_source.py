"""What `status` says of a source that doesn't answer: in plain words first, then what the target knows."""

from __future__ import annotations

from causeway.core.kernel.timestamps import how_long_ago, rfc3339
from causeway.usecases.inspect.flow_status import FlowView


def with_trouble(payload: dict[str, object], view: FlowView) -> dict[str, object]:
    """With the fields of the error that --json prints for a cluster that can't be used."""
    if view.silence is None:
        return payload
    trouble = view.silence.trouble
    said = {"message": str(trouble), "exit_code": trouble.exit_code}
    return {**payload, **trouble.as_dict(), **said}


def silence_as_dict(view: FlowView) -> dict[str, object] | None:
    silence = view.silence
    if silence is None:
        return None
    seconds = (silence.until_ms - silence.since_ms) / 1000
    return {"since": rfc3339(silence.since_ms), "seconds": seconds, "why": str(silence.trouble)}


def silence_lines(view: FlowView) -> list[str]:
    silence, source, target = view.silence, view.flow.source, view.flow.target
    if silence is None:
        return []
    seconds = max(round((silence.until_ms - silence.since_ms) / 1000), 1)
    does = "can not be used by this command" if silence.is_refusal else "does not answer"
    return [
        f"{view.flow.name}: the source {source} {does}. This command has tried since "
        f"{rfc3339(silence.since_ms)}, for {seconds} s.",
        f"Reason: {silence.trouble}",
        f"The table shows what the target {target} knows. How far {source} has got is unknown.",
        "",
    ]


def last_record(view: FlowView) -> str:
    """Of all partitions, the newest one."""
    if view.silence is None:
        return ""
    times = [p.last_record_ms for p in view.unseen.values() if p.last_record_ms is not None]
    if not times:
        return "; no mirrored record is there"
    return f"; last mirrored record {rfc3339(max(times))} ({how_long_ago(max(times), view.looked_at_ms)})"
