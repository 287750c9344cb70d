"""Names on the target: legal, not too long, not colliding, and written by one flow only.

Reasons: brokers refuse names over 249 characters and two that differ only by '.' and '_'; two flows that
write one topic park each other's partitions as foreign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from causeway.core.doctor.finding import Finding, failed, passed, some, warn
from causeway.core.kernel.errors import BadInput, UnfitTarget
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.model.naming import IdentityNaming, PrefixNaming, RuleNaming
from causeway.core.topics.plan import TopicPlan
from causeway.core.topics.topic_facts import RefusedTopic

CHECK_NAMES, CHECK_CLASHES = "names", "clashes"
_MOST_LINES = 10
_SCRATCH = re.compile(r"causeway-doctor\.[0-9a-f]+\.internal")


def judge_names(flow: Flow, plan: TopicPlan) -> list[Finding]:
    """`plan` as names and partition counts alone make it; rights are another matter."""
    found = [_refused_topic(flow, each) for each in plan.refused[:_MOST_LINES]]
    if len(plan.refused) > _MOST_LINES:
        rest = [each.topic for each in plan.refused[_MOST_LINES:]]
        found.append(
            failed(
                CHECK_NAMES, flow.name, f"so with {some(rest)}", f"see causeway plan {flow.name}", UnfitTarget
            )
        )
    if not plan.mirrored:
        finding = "; ".join(plan.notes) or f"no topic of {flow.source} can be mirrored"
        return [*found, warn(CHECK_NAMES, flow.name, finding, "check topics of the flow in flows.yaml")]
    if not found:
        number = counted(len(plan.mirrored), "topic")
        found.append(
            passed(CHECK_NAMES, flow.name, f"{number}, each with a name of its own on {flow.target}")
        )
    return found


def _refused_topic(flow: Flow, topic: RefusedTopic) -> Finding:
    return failed(CHECK_NAMES, flow.name, f"{topic.topic}: {topic.reason}", topic.remedy, UnfitTarget)


def judge_clashes(flow: Flow, others: Iterable[Flow], targets: Collection[str]) -> list[Finding]:
    """Whether another flow of the same file would write the same topics of the same cluster."""
    found: list[Finding] = []
    for other in others:
        if other.name == flow.name or other.target != flow.target:
            continue
        shared = [name for name in sorted(targets) if _would_write(other, name)]
        if not shared:
            continue
        remedy = f"take them out of topics of {flow.name} or of {other.name}, or use prefix naming"
        if other.source == flow.source and not isinstance(other.naming, RuleNaming):
            said = f"{other.name} writes {some(shared)} on {flow.target} too"
            found.append(failed(CHECK_CLASHES, flow.name, said, remedy, BadInput))
        else:
            said = (
                f"{other.name} writes {some(shared)} on {flow.target} too, if {other.source} has such topics"
            )
            found.append(warn(CHECK_CLASHES, flow.name, said, remedy))
    said = f"no other flow into {flow.target} writes the same topics"
    return found or [passed(CHECK_CLASHES, flow.name, said)]


def _would_write(other: Flow, target: str) -> bool:
    match other.naming:
        case IdentityNaming():
            return other.topics.matches(target)
        case PrefixNaming() as naming:
            prefix = naming.target_topic("")
            return target.startswith(prefix) and other.topics.matches(target.removeprefix(prefix))
        case RuleNaming() as naming:
            return any(rule.could_make(target) for rule in naming.rules)
    return False


def judge_leftovers(alias: str, topics: Sequence[str]) -> Finding | None:
    """Scratch topics of a doctor that was killed before it could delete them."""
    left = [name for name in topics if _SCRATCH.fullmatch(name)]
    if not left:
        return None
    return warn(
        "leftovers",
        alias,
        f"scratch topics of a doctor that was killed, or is at work: {some(left)}",
        f"kafka-topics.sh --delete --topic {left[0]}, and the others",
    )
