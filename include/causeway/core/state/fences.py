"""The fences of a flow: a set, by token. Each has a scope, and each is lifted by its own name only.

A fence whose scope is the flow stops its runs. One whose scope is some topics leaves these topics of the
target out, and all others go on. What somebody raised stands until that one is lifted, whoever else raises
and lifts fences meanwhile.

Records, by version of the format
    2  one key for each fence, `2/fence/<flow>/<token>`, written when it is raised and when it is lifted.
       So compaction never keeps a fence without its lift, nor loses one that stands. A token is used once: a
       late record can raise its own fence again, or lift it, and no other.
    1  one key for each flow, lifted by a record with a key of its own that names a generation. Only read, and
       lifted as it was raised; a newer one of this version takes the place of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causeway.core.kernel.json_fields import whole_number
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.state.flow_log import as_record

COMMAND = "a command"
"""Owner of a fence that stands only as long as its command works."""

NOT_WRITTEN = -1
_STANDING, _LIFTED = "standing", "lifted"
_RUNS_WORDS = re.compile(r"(failover|failback) [0-9a-f]{12}|stands by since failback [0-9a-f]{12}: .*")
"""How a failover and a failback knew their own fences in version 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    generation: int = NOT_WRITTEN
    """Of its newest record: people name it by that."""
    by: str
    because: str
    since_ms: int
    token: str
    topics: frozenset[str] | None = None
    """Of the target: these alone are fenced; None: the whole flow is."""
    owner: str = ""
    """Who lifts it without being asked to: a command that works just now, or the run of a failover or
    failback. Empty: people raised it, and people lift it."""
    is_legacy: bool = False
    """Of version 1."""

    @property
    def stops_the_flow(self) -> bool:
        return self.topics is None

    @property
    def is_at_work(self) -> bool:
        return self.owner == COMMAND

    @property
    def is_of_a_run(self) -> bool:
        return self.owner not in ("", COMMAND)

    def __str__(self) -> str:
        only = "" if self.topics is None else f"; only {', '.join(sorted(self.topics))}"
        return f"by {self.by} since {rfc3339(self.since_ms)}: {self.because}{only}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """A fence that was lifted, for whoever raised it and wants to know who that was."""

    by: str
    because: str
    at_ms: int

    def __str__(self) -> str:
        return f"by {self.by} at {rfc3339(self.at_ms)}: {self.because}"


Fences = Mapping[str, Fence]
Lifts = Mapping[str, Lift]


def parse_fence(version: int, token: str, value: Mapping[str, object], generation: int) -> Fence | Lift:
    """:raises KeyError: | :raises ValueError: it is neither."""
    if version == 1:
        return _legacy(value, generation)
    by, because, at_ms = str(value["by"]), str(value["because"]), whole_number(value["at_ms"])
    state, scope = value["state"], value["scope"]
    if not token or state not in (_STANDING, _LIFTED) or not isinstance(scope, list | None):
        raise ValueError(value)
    if state == _LIFTED:
        return Lift(by=by, because=because, at_ms=at_ms)
    return Fence(
        generation=generation,
        by=by,
        because=because,
        since_ms=at_ms,
        token=token,
        topics=None if scope is None else frozenset(map(str, scope)),
        owner=str(value["owner"]),
    )


def _legacy(value: Mapping[str, object], generation: int) -> Fence:
    token, because = str(value.get("token", "")), str(value["because"])
    runs = because if _RUNS_WORDS.fullmatch(because) else ""
    return Fence(
        generation=generation,
        by=str(value["by"]),
        because=because,
        since_ms=whole_number(value["at_ms"]),
        token=token or f"generation-{generation}",
        owner=COMMAND if token else runs,
        is_legacy=True,
    )


def fence_over(standing: Sequence[Fence], target_topic: str) -> Fence | None:
    """The newest one that leaves this topic out while the flow goes on; None: it is copied."""
    return next((fence for fence in reversed(standing) if target_topic in (fence.topics or ())), None)


def with_fence(fences: Fences, fence: Fence) -> dict[str, Fence]:
    kept = {t: f for t, f in fences.items() if not (fence.is_legacy and f.is_legacy)}
    return {**kept, fence.token: fence}


def without_legacy(fences: Fences, generation: int) -> dict[str, Fence] | None:
    """Less the one of version 1 with this generation; None: it doesn't stand."""
    kept = {t: f for t, f in fences.items() if not (f.is_legacy and f.generation == generation)}
    return kept if len(kept) < len(fences) else None


def fence_record(flow: str, fence: Fence, *, most_lanes: int) -> tuple[bytes, bytes]:
    """Of one that is to be raised; its generation will be the record's offset."""
    scope = None if fence.topics is None else sorted(fence.topics)
    said: dict[str, object] = {"by": fence.by, "because": fence.because, "at_ms": fence.since_ms}
    value = {"state": _STANDING, **said, "most_lanes": most_lanes, "scope": scope, "owner": fence.owner}
    return _record(flow, fence.token, value)


def lift_record(
    flow: str, fence: Fence, *, by: str, because: str, most_lanes: int, at_ms: int
) -> tuple[bytes, bytes]:
    said: dict[str, object] = {"by": by, "because": because, "at_ms": at_ms}
    if fence.is_legacy:
        key, body = as_record("lift", flow, {"lifts": fence.generation, **said})
        return key + f"/{fence.generation}".encode(), body
    scope = None if fence.topics is None else sorted(fence.topics)
    return _record(flow, fence.token, {"state": _LIFTED, **said, "most_lanes": most_lanes, "scope": scope})


def _record(flow: str, token: str, value: dict[str, object]) -> tuple[bytes, bytes]:
    key, body = as_record("fence", flow, value)
    return key + f"/{token}".encode(), body
