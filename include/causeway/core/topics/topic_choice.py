"""`--topics a,b`: the source topics that a run is about, as somebody typed them.

A wrong name is refused before anything is written: it must not look like a topic without records.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from causeway.core.kernel.errors import UnknownName
from causeway.core.model.flow import Flow
from causeway.core.topics.plan import TopicPlan, only_of, without


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Which of a flow's source topics something is done for."""

    only: Collection[str] | None = None
    """None: all."""
    leave_alone: Collection[str] = ()
    """It is known already that these can't be mirrored."""

    def of(self, plan: TopicPlan) -> TopicPlan:
        return without(only_of(plan, self.only), self.leave_alone)


EVERY_TOPIC = TopicChoice()


def refuse_unknown_topics(
    flow: Flow, wanted: Collection[str], plan: TopicPlan, on_source: Collection[str], gone: Collection[str]
) -> None:
    """`gone`: topics that were mirrored and have been deleted on the source: a run says so.

    :raises UnknownName: the flow wouldn't mirror it.
    """
    known = {topic.source: topic.target for topic in plan.mirrored}
    fit = {*known, *gone, *(each.topic for each in plan.refused)}
    for name in sorted(set(wanted) - fit):
        raise UnknownName("--topics", value=name, **_why_unknown(flow, name, known, name in on_source))


def _why_unknown(flow: Flow, name: str, known: dict[str, str], is_there: bool) -> dict[str, str]:  # noqa: FBT001 - a fact
    source = next((source for source, target in known.items() if target == name), None)
    if source is not None:
        return {
            "rule": f"is the name of the mirror on {flow.target}",
            "remedy": f"write the topic's name on {flow.source}: {source}",
        }
    if is_there:
        return {
            "rule": f"flow {flow.name} doesn't mirror this topic of {flow.source}",
            "remedy": "add it to the flow's topics in flows.yaml",
        }
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return {
        "rule": f"there is no such topic on {flow.source}",
        "remedy": f"{hint}`causeway plan {flow.name}` lists the flow's topics",
    }
